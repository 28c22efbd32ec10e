//! A report that can be pasted into a public issue: paths and names of weights masked.

use crate::model::Artifact;
use crate::report::ArtifactReport;
use regex::Regex;
use std::borrow::Cow;
use std::sync::LazyLock;

/// Paths of Unix and Windows with at least two parts; the file's own ending stays, torch's own files stay readable.
static PATH: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r#"(?:[A-Za-z]:[\\/]|~/|\.{0,2}/)(?:[^\s/\\'"`:,;()\[\]<>]+[/\\])*[^\s/\\'"`:,;()\[\]<>]*"#).ok()
});

/// Masks a report in place.
pub fn redact(report: &mut ArtifactReport, artifact: Option<&Artifact>) {
    let mut names: Vec<(String, String)> = Vec::new();
    for model in artifact.iter().flat_map(|a| &a.models) {
        for constant in model.constants.iter().flatten() {
            let mask = format!("<constant {}>", constant.index);
            names.extend([&constant.fqn, &constant.name].into_iter().flatten().map(|n| (n.clone(), mask.clone())));
        }
    }
    names.extend(names_of_file(&report.path));
    // long names first: `fc1.weight_g` holds `fc1.weight`
    names.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
    names.dedup();
    let mask = |text: &mut String| *text = masked(text, &names);
    mask(&mut report.path);
    mask(&mut report.summary);
    for cause in &mut report.causes {
        mask(&mut cause.sentence);
        cause.fix.iter_mut().for_each(mask);
        for evidence in &mut cause.evidence {
            mask(&mut evidence.detail);
            evidence.member.iter_mut().for_each(mask);
        }
    }
    for finding in &mut report.findings {
        mask(&mut finding.message);
        for text in [&mut finding.expected, &mut finding.found, &mut finding.fix].into_iter().flatten() {
            mask(text);
        }
        for evidence in &mut finding.evidence {
            mask(&mut evidence.detail);
            evidence.member.iter_mut().for_each(mask);
        }
    }
    report.error.iter_mut().for_each(mask);
}

/// The artefact's path as it was given, its file name, and that without its ending: the folder in a package is called so.
fn names_of_file(path: &str) -> Vec<(String, String)> {
    let file = path.rsplit(['/', '\\']).next().unwrap_or(path);
    let (stem, ending) =
        file.rsplit_once('.').map_or((file, String::new()), |(stem, ending)| (stem, format!(".{ending}")));
    let path = (path.to_owned(), format!("<path>/<file>{ending}"));
    let file = (file.to_owned(), format!("<file>{ending}"));
    let whole = (path.0 != file.0).then_some(path);
    whole.into_iter().chain([file, (stem.to_owned(), "<file>".to_owned())]).collect()
}

fn masked(text: &str, names: &[(String, String)]) -> String {
    let mut text: Cow<'_, str> = Cow::Borrowed(text);
    for (name, mask) in names.iter().filter(|(name, _)| name.len() > 1) {
        if text.contains(name.as_str()) {
            text = Cow::Owned(replace_word(&text, name, mask));
        }
    }
    if let Some(path) = PATH.as_ref() {
        text = Cow::Owned(path.replace_all(&text, |found: &regex::Captures<'_>| mask_path(&found[0])).into_owned());
    }
    text.into_owned()
}

/// Torch's own sources say where in torch it happened and name nobody; of other paths the ending is kept.
fn mask_path(path: &str) -> String {
    if !path.get(1..).unwrap_or_default().contains(['/', '\\']) {
        return path.to_owned();
    }
    for root in ["site-packages/torch/", "/pytorch/torch/", "/pytorch/aten/", "/pytorch/c10/"] {
        if let Some(at) = path.find(root) {
            return format!("<path>/{}", path.get(at..).unwrap_or_default().trim_start_matches('/'));
        }
    }
    let file = path.rsplit(['/', '\\']).next().unwrap_or_default();
    match file.rsplit_once('.') {
        Some((_, ending)) if !ending.is_empty() => format!("<path>/<file>.{ending}"),
        _ => "<path>".to_owned(),
    }
}

/// Replaces whole names only: `weight` is not part of `weights`.
fn replace_word(text: &str, name: &str, mask: &str) -> String {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut before: Option<char> = None;
    while let Some(at) = rest.find(name) {
        let (head, tail) = rest.split_at(at);
        let after = tail.get(name.len()..).unwrap_or_default();
        let left = head.chars().next_back().or(before);
        out.push_str(head);
        let whole = !left.is_some_and(is_part) && !after.chars().next().is_some_and(is_part);
        out.push_str(if whole { mask } else { name });
        before = name.chars().next_back();
        rest = after;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_artefact_is_masked_however_it_is_given() {
        let names = names_of_file("home/me/ranker-2.1.pt2");
        assert_eq!(masked("home/me/ranker-2.1.pt2 (ranker-2.1)", &names), "<path>/<file>.pt2 (<file>)");
        assert_eq!(masked("ranker.pt2", &names_of_file("ranker.pt2")), "<file>.pt2");
    }

    #[test]
    fn paths_and_weights_are_masked() {
        let names = vec![
            ("fc1.weight".to_owned(), "<constant 0>".to_owned()),
            ("fc1_weight".to_owned(), "<constant 0>".to_owned()),
        ];
        let text = "Error in dlopen: /srv/secret/m.pt2: invalid; fc1.weight (fc1_weight) and fc1_weights at /venv/lib/python3/site-packages/torch/export/x.py, line 3";
        assert_eq!(
            masked(text, &names),
            "Error in dlopen: <path>/<file>.pt2: invalid; <constant 0> (<constant 0>) and fc1_weights at <path>/site-packages/torch/export/x.py, line 3"
        );
        assert_eq!(masked("C:\\Users\\me\\m.pt2 and s0 // 2, 8/2", &names), "<path>/<file>.pt2 and s0 // 2, 8/2");
    }
}
