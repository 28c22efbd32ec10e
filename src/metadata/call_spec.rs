//! Call specs: pytree JSON that tells how a caller's arguments become the flat list of inputs (format reference 6).

use super::json;
use crate::error::{Error, Result};
use crate::limits;
use serde_json::Value;

/// The protocol number that all releases write.
const PROTOCOL: i64 = 1;

/// A leaf of a call spec: a tensor, or a number, text or `None` that was baked in at export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leaf {
    /// in keystr form: `args[0]['f16']`, `kwargs['bias']`; of outputs `['logits']`, empty when the model returns one value
    pub path: String,
    /// number of the positional argument, or name of the keyword that it is part of; `None` for outputs
    pub argument: Option<Argument>,
}

/// Which argument of the call a leaf is part of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Argument {
    /// positional, from 0
    Position(usize),
    /// by name
    Keyword(String),
}

impl Leaf {
    /// What follows the argument: `['f16']` of `args[0]['f16']`.
    pub fn inner_path(&self) -> &str {
        let outer = match &self.argument {
            None => return &self.path,
            Some(Argument::Position(n)) => format!("args[{n}]"),
            Some(Argument::Keyword(name)) => format!("kwargs[{}]", quote(name)),
        };
        self.path.strip_prefix(&outer).unwrap_or(&self.path)
    }
}

/// Leaves of an input call spec; `None` when the artefact was built without one (format reference 6.5).
///
/// # Errors
/// Not a call spec; the error says what is wrong with it.
pub fn input_leaves(text: &str) -> Result<Option<Vec<Leaf>>> {
    let Some(root) = root(text)? else { return Ok(None) };
    let children = children(&root)?;
    let [positional, keywords] = children else {
        return Err(Error::damaged(format!("an input call spec has two parts, this one {}", children.len())));
    };
    let mut walk = Walk::default();
    for (number, (key, child)) in keyed_children(positional)?.into_iter().enumerate() {
        walk.argument = Some(Argument::Position(number));
        walk.descend(child, format!("args{key}"))?;
    }
    let names = keys(keywords)?;
    for ((key, child), name) in keyed_children(keywords)?.into_iter().zip(names) {
        walk.argument = Some(Argument::Keyword(name.as_str().map_or_else(|| name.to_string(), str::to_owned)));
        walk.descend(child, format!("kwargs{key}"))?;
    }
    Ok(Some(walk.leaves))
}

/// Leaves of an output call spec; `None` when the artefact was built without one. A model that returns `None` somewhere
/// has more leaves than outputs.
///
/// # Errors
/// As [`input_leaves`].
pub fn output_leaves(text: &str) -> Result<Option<Vec<Leaf>>> {
    let Some(root) = root(text)? else { return Ok(None) };
    let mut walk = Walk::default();
    walk.descend(&root, String::new())?;
    Ok(Some(walk.leaves))
}

/// The tree, out of its envelope `[1, tree]`. `()` and nothing are what lower-level builds write.
fn root(text: &str) -> Result<Option<Value>> {
    let text = text.trim();
    if matches!(text, "" | "()" | "null") {
        return Ok(None);
    }
    let value = json::parse(text.as_bytes())?;
    let Value::Array(mut envelope) = value else { return Err(Error::damaged("a call spec is a list of two")) };
    let protocol = envelope.first().and_then(Value::as_i64);
    if envelope.len() != 2 || protocol.is_none() {
        return Err(Error::damaged("a call spec is its protocol number and a tree"));
    }
    if protocol != Some(PROTOCOL) {
        return Err(Error::new(
            crate::error::ErrorKind::Unsupported,
            format!("call spec protocol {} is not known; {PROTOCOL} is", protocol.unwrap_or_default()),
        ));
    }
    Ok(envelope.pop())
}

fn children(node: &Value) -> Result<&[Value]> {
    node.get("children_spec")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .ok_or_else(|| Error::damaged("a node of the call spec has no children_spec"))
}

/// The context, which is JSON inside a text for most types and an object for `defaultdict`.
fn context(node: &Value) -> Option<Value> {
    match node.get("context")? {
        Value::String(text) => json::parse(text.as_bytes()).ok(),
        other => Some(other.clone()),
    }
}

/// Keys of a mapping node.
fn keys(node: &Value) -> Result<Vec<Value>> {
    let context = context(node).unwrap_or(Value::Null);
    let list = match &context {
        Value::Object(fields) => fields.get("dict_context"),
        other => Some(other),
    };
    match list {
        Some(Value::Array(keys)) => Ok(keys.clone()),
        // a dict_context can itself be a text
        Some(Value::String(text)) => match json::parse(text.as_bytes()) {
            Ok(Value::Array(keys)) => Ok(keys),
            _ => Err(Error::damaged("the keys of a dictionary in the call spec are no list")),
        },
        _ => Err(Error::damaged("the keys of a dictionary in the call spec are no list")),
    }
}

/// Children with the step that leads to each, `[0]`, `['key']` or `.field`.
fn keyed_children(node: &Value) -> Result<Vec<(String, &Value)>> {
    const MAPPINGS: &[&str] = &["builtins.dict", "collections.OrderedDict", "collections.defaultdict"];
    let children = children(node)?;
    let kind = node.get("type").and_then(Value::as_str).unwrap_or_default();
    let steps: Vec<String> = if MAPPINGS.contains(&kind) {
        let keys = keys(node)?;
        if keys.len() != children.len() {
            let message =
                format!("a dictionary of the call spec has {} keys and {} values", keys.len(), children.len());
            return Err(Error::damaged(message));
        }
        keys.iter().map(|key| format!("[{}]", literal(key))).collect()
    } else if let Some(fields) = dataclass_fields(node, children.len()) {
        fields.into_iter().map(|field| format!(".{field}")).collect()
    } else {
        (0..children.len()).map(|i| format!("[{i}]")).collect()
    };
    Ok(steps.into_iter().zip(children).collect())
}

/// `[[fields with a value], [fields that are None]]`: only the first list has children.
fn dataclass_fields(node: &Value, count: usize) -> Option<Vec<String>> {
    let Value::Array(lists) = context(node)? else { return None };
    let [Value::Array(fields), Value::Array(_)] = lists.as_slice() else { return None };
    if fields.len() != count {
        return None;
    }
    fields.iter().map(|f| f.as_str().map(str::to_owned)).collect()
}

/// A key as Python's `repr` shows it.
fn literal(key: &Value) -> String {
    match key {
        Value::String(text) => quote(text),
        Value::Bool(true) => "True".into(),
        Value::Bool(false) => "False".into(),
        Value::Null => "None".into(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(literal).collect();
            let comma = if items.len() == 1 { "," } else { "" };
            format!("({}{comma})", items.join(", "))
        }
        Value::Object(fields) => {
            // `{"__enum__": true, "fqn": "module:Color", "name": "RED"}`
            let text = |key: &str| fields.get(key).and_then(Value::as_str).unwrap_or_default();
            let class = text("fqn").rsplit([':', '.']).next().unwrap_or_default();
            format!("{class}.{}", text("name"))
        }
        Value::Number(number) => number.to_string(),
    }
}

fn quote(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\");
    if text.contains('\'') && !text.contains('"') {
        return format!("\"{escaped}\"");
    }
    format!("'{}'", escaped.replace('\'', "\\'"))
}

#[derive(Default)]
struct Walk {
    leaves: Vec<Leaf>,
    argument: Option<Argument>,
    nodes: usize,
}

impl Walk {
    /// Depth is bounded by that of the JSON.
    fn descend(&mut self, node: &Value, path: String) -> Result<()> {
        self.nodes = self.nodes.saturating_add(1);
        if self.nodes > limits::NODES {
            return Err(Error::limit(format!("the call spec has more than {} nodes", limits::NODES)));
        }
        match node.get("type") {
            Some(Value::Null) => {
                self.leaves.push(Leaf { path, argument: self.argument.clone() });
                Ok(())
            }
            Some(Value::String(_)) => {
                for (step, child) in keyed_children(node)? {
                    self.descend(child, format!("{path}{step}"))?;
                }
                Ok(())
            }
            _ => Err(Error::damaged("a node of the call spec has no type")),
        }
    }
}

/// How the leaves of the input call spec become the model's inputs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InputPaths {
    /// per input its leaf, as an index into the leaves; `None` when that is open
    pub leaf_of_input: Vec<Option<usize>>,
    /// leaves that are not tensors: values baked in at export
    pub baked_in: Vec<usize>,
    /// what is open or wrong, one clause
    pub note: Option<String>,
    /// the leaves were told apart by the numbers in the names of the inputs, not by a statement
    pub is_inferred: bool,
}

/// Assigns leaves to inputs. The spec does not say which leaves are tensors; the caller's wrapper drops those that are not
/// and keeps the order (format reference 6.3).
///
/// Where there are more leaves than inputs, the numbers in their internal names tell: the graph numbers its arguments
/// `argN_1` over lifted parameters and buffers first and then *all* leaves, and only tensors become inputs
/// (torch/_inductor/graph.py `placeholder`, torch/_inductor/compile_fx.py `_aoti_flatten_inputs`: other leaves stay as
/// `None`). The mapping is taken when only one start of the numbering fits; `lifted` is a lower bound for it: the number of
/// parameters and buffers among the constants, 0 when unknown.
pub fn map_inputs(leaf_count: usize, names: &[Option<String>], lifted: usize) -> InputPaths {
    let inputs = names.len();
    if leaf_count == inputs {
        return InputPaths { leaf_of_input: (0..inputs).map(Some).collect(), ..InputPaths::default() };
    }
    let open =
        |note: String| InputPaths { leaf_of_input: vec![None; inputs], note: Some(note), ..InputPaths::default() };
    if leaf_count < inputs {
        return open(format!("the call spec has {leaf_count} leaves, fewer than the {inputs} inputs"));
    }
    if inputs == 0 {
        return InputPaths { baked_in: (0..leaf_count).collect(), ..InputPaths::default() };
    }
    let surplus = leaf_count.saturating_sub(inputs);
    let ambiguous = || {
        open(format!(
            "{surplus} of the {leaf_count} leaves of the call spec {} no tensor, and which is not recorded",
            if surplus == 1 { "is" } else { "are" }
        ))
    };
    let numbers: Option<Vec<usize>> = names.iter().map(|name| argument_number(name.as_deref()?)).collect();
    let Some(numbers) = numbers.filter(|n| n.is_sorted_by(|a, b| a < b)) else { return ambiguous() };
    let (Some(first), Some(last)) = (numbers.first(), numbers.last()) else { return ambiguous() };
    // the numbering starts so that the last number is still a leaf, and not behind the first number
    let lowest = last.saturating_add(1).saturating_sub(leaf_count).max(lifted);
    if lowest != *first {
        return ambiguous();
    }
    let leaf_of_input: Vec<Option<usize>> =
        numbers.iter().map(|n| n.checked_sub(lowest).filter(|leaf| *leaf < leaf_count)).collect();
    if leaf_of_input.iter().any(Option::is_none) {
        return ambiguous();
    }
    let baked_in = (0..leaf_count).filter(|leaf| !leaf_of_input.contains(&Some(*leaf))).collect();
    InputPaths { leaf_of_input, baked_in, note: None, is_inferred: true }
}

/// 4 of `arg4_1`.
fn argument_number(name: &str) -> Option<usize> {
    name.strip_prefix("arg")?.strip_suffix("_1")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAF: &str = r#"{"type": null, "context": null, "children_spec": []}"#;

    fn node(kind: &str, context: &str, children: &[&str]) -> String {
        let context = serde_json::to_string(context).unwrap();
        format!(r#"{{"type": "{kind}", "context": {context}, "children_spec": [{}]}}"#, children.join(", "))
    }
    fn inputs(positional: &[&str], keys: &str, keywords: &[&str]) -> String {
        let args = node("builtins.tuple", "null", positional);
        let kwargs = node("builtins.dict", keys, keywords);
        format!("[1, {}]", node("builtins.tuple", "null", &[&args, &kwargs]))
    }
    fn paths(text: &str) -> Vec<String> {
        input_leaves(text).unwrap().unwrap().into_iter().map(|l| l.path).collect()
    }

    #[test]
    fn paths_are_pythons_keystr() {
        let dict = node("builtins.dict", r#"["f16", 3, true, [1, 2], "it's"]"#, &[LEAF; 5]);
        let list = node("builtins.list", "null", &[LEAF, &node("collections.deque", "null", &[LEAF])]);
        let class = node("my.Class", r#"[["a", "b"], ["gone"]]"#, &[LEAF, LEAF]);
        let named = node("collections.namedtuple", "my.Point", &[LEAF]);
        let text = inputs(&[&dict, &list, &class, &named], r#"["bias"]"#, &[LEAF]);
        assert_eq!(
            paths(&text),
            [
                "args[0]['f16']",
                "args[0][3]",
                "args[0][True]",
                "args[0][(1, 2)]",
                "args[0][\"it's\"]",
                "args[1][0]",
                "args[1][1][0]",
                "args[2].a",
                "args[2].b",
                "args[3][0]",
                "kwargs['bias']"
            ]
        );
        let leaves = input_leaves(&text).unwrap().unwrap();
        assert_eq!(leaves.first().unwrap().inner_path(), "['f16']");
        assert_eq!(leaves.last().unwrap().argument, Some(Argument::Keyword("bias".into())));
        assert_eq!(leaves.last().unwrap().inner_path(), "");
    }

    #[test]
    fn defaultdict_keeps_its_keys_in_an_object() {
        let inner = format!(
            r#"{{"type": "collections.defaultdict", "context": {{"default_factory_module": "builtins",
               "default_factory_name": "list", "dict_context": ["k"]}}, "children_spec": [{LEAF}]}}"#
        );
        assert_eq!(paths(&inputs(&[&inner], "[]", &[])), ["args[0]['k']"]);
    }

    #[test]
    fn absent_and_damaged_specs_are_told_apart() {
        assert_eq!(input_leaves("()").unwrap(), None);
        assert_eq!(output_leaves("").unwrap(), None);
        let single = format!("[1, {LEAF}]");
        assert_eq!(output_leaves(&single).unwrap().unwrap().first().unwrap().path, "");
        for text in ["[1", "[2, {}]", "[1, {}]", "{}", "[1, {\"type\": 7}]", r#"["a", "b"]"#] {
            assert!(input_leaves(text).is_err(), "{text}");
        }
        let wrong = inputs(&[], r#"["a", "b"]"#, &[LEAF]);
        assert!(input_leaves(&wrong).unwrap_err().message().contains("2 keys and 1 values"));
    }

    fn mapped(leaves: usize, names: &[&str], lifted: usize) -> (Vec<Option<usize>>, Vec<usize>) {
        let names: Vec<Option<String>> = names.iter().map(|n| Some((*n).to_owned())).collect();
        let got = map_inputs(leaves, &names, lifted);
        assert_eq!(got.note.is_some(), got.leaf_of_input.contains(&None), "{got:?}");
        (got.leaf_of_input, got.baked_in)
    }

    #[test]
    fn gaps_in_the_numbering_show_what_was_baked_in() {
        assert_eq!(mapped(2, &["arg4_1", "arg5_1"], 0), (vec![Some(0), Some(1)], vec![]));
        // a gap: three leaves in a span of three
        assert_eq!(mapped(3, &["arg4_1", "arg6_1"], 0), (vec![Some(0), Some(2)], vec![1]));
        // trailing, and nothing before it: the numbering cannot start below 0
        assert_eq!(mapped(3, &["arg0_1", "arg1_1"], 0), (vec![Some(0), Some(1)], vec![2]));
        // trailing, and all parameters known
        assert_eq!(mapped(2, &["arg4_1"], 4), (vec![Some(0)], vec![1]));
        // leading or trailing: open
        assert_eq!(mapped(2, &["arg4_1"], 3), (vec![None], vec![]));
        assert_eq!(mapped(2, &["x"], 0), (vec![None], vec![]));
        assert_eq!(mapped(2, &[], 0), (vec![], vec![0, 1]));
        assert_eq!(mapped(1, &["arg0_1", "arg1_1"], 0), (vec![None, None], vec![]));
    }

    mod properties {
        use super::*;
        use proptest::prelude::*;

        /// A tree with the paths of its leaves.
        #[derive(Debug, Clone)]
        enum Tree {
            Leaf,
            Tuple(Vec<Tree>),
            Dict(Vec<(String, Tree)>),
        }

        impl Tree {
            fn to_json(&self) -> Value {
                let node = |kind: &str, context: Value, children: Vec<Value>| serde_json::json!({"type": kind, "context": context.to_string(), "children_spec": children});
                match self {
                    Self::Leaf => serde_json::json!({"type": null, "context": null, "children_spec": []}),
                    Self::Tuple(items) => {
                        node("builtins.tuple", Value::Null, items.iter().map(Self::to_json).collect())
                    }
                    Self::Dict(items) => {
                        let keys: Vec<&String> = items.iter().map(|item| &item.0).collect();
                        node("builtins.dict", serde_json::json!(keys), items.iter().map(|i| i.1.to_json()).collect())
                    }
                }
            }
            fn paths(&self, at: String, all: &mut Vec<String>) {
                match self {
                    Self::Leaf => all.push(at),
                    Self::Tuple(items) => {
                        items.iter().enumerate().for_each(|(n, t)| t.paths(format!("{at}[{n}]"), all))
                    }
                    Self::Dict(items) => {
                        items.iter().for_each(|(key, tree)| tree.paths(format!("{at}[{}]", quote(key)), all));
                    }
                }
            }
        }

        fn any_tree() -> impl Strategy<Value = Tree> {
            Just(Tree::Leaf).prop_recursive(4, 32, 4, |inner| {
                prop_oneof![
                    proptest::collection::vec(inner.clone(), 0..4).prop_map(Tree::Tuple),
                    proptest::collection::vec(("\\PC{0,6}", inner), 0..4).prop_map(Tree::Dict),
                ]
            })
        }

        proptest! {
            #[test]
            fn written_trees_are_read_back(tree in any_tree()) {
                let text = serde_json::json!([1, tree.to_json()]).to_string();
                let leaves = output_leaves(&text).unwrap().unwrap();
                let mut paths = Vec::new();
                tree.paths(String::new(), &mut paths);
                prop_assert_eq!(leaves.into_iter().map(|leaf| leaf.path).collect::<Vec<_>>(), paths);
            }

            #[test]
            fn written_arguments_are_read_back(
                positional in proptest::collection::vec(any_tree(), 0..4),
                keywords in proptest::collection::vec(("[a-z_]{1,6}", any_tree()), 0..4),
            ) {
                let tree = Tree::Tuple(vec![Tree::Tuple(positional.clone()), Tree::Dict(keywords.clone())]);
                let leaves = input_leaves(&serde_json::json!([1, tree.to_json()]).to_string()).unwrap().unwrap();
                let mut paths = Vec::new();
                Tree::Tuple(positional).paths("args".into(), &mut paths);
                Tree::Dict(keywords).paths("kwargs".into(), &mut paths);
                for leaf in &leaves {
                    prop_assert!(leaf.path.ends_with(leaf.inner_path()));
                }
                prop_assert_eq!(leaves.into_iter().map(|leaf| leaf.path).collect::<Vec<_>>(), paths);
            }

            #[test]
            fn no_text_panics(text in "\\PC{0,60}", inner in "[\\[\\]{}:,\"a-z0-9]{0,40}") {
                for text in [text, format!("[1, {inner}]")] {
                    let _ = input_leaves(&text);
                    let _ = output_leaves(&text);
                }
            }
        }
    }
}
