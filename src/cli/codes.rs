//! `codes`: the list of checks, or the page of one.

use super::CliError;
use super::arguments::{CodesArgs, Format, OutputArgs};
use crate::checks::codes::{self, Code};
use crate::model::word;
use crate::report::Exit;
use crate::target::UsageError;

/// Always exit 0, unless the code is unknown.
pub fn run(args: &CodesArgs, output: &OutputArgs) -> Result<Exit, CliError> {
    let text = match (&args.code, output.format()) {
        (Some(code), _) => page(find(code)?),
        (None, Format::Json | Format::Jsonl) => list_json(),
        (None, _) => list(),
    };
    output.write_text(&text)?;
    Ok(Exit::Holds)
}

/// The code with this id.
pub fn find(id: &str) -> Result<&'static Code, CliError> {
    codes::find(id).ok_or_else(|| {
        let valid: Vec<&str> = codes::all().map(|code| code.id).collect();
        UsageError::unknown_word("code", id, &valid).into()
    })
}

fn list() -> String {
    let width = codes::all().map(|code| code.id.len()).max().unwrap_or(0);
    codes::all().map(|code| format!("{:width$}  {:5}  {}\n", code.id, word(&code.level), code.summary)).collect()
}

fn list_json() -> String {
    let rows: Vec<serde_json::Value> = codes::all()
        .map(|code| serde_json::json!({"code": code.id, "level": code.level, "summary": code.summary}))
        .collect();
    format!("{}\n", serde_json::Value::from(rows))
}

/// The page of a code.
pub fn page(code: &Code) -> String {
    let page = code.page;
    format!(
        "{}: {} ({})\n\nWhat is compared\n  {}\n\nWhy it matters\n  {}\n\nReports\n  {}\n\nHow to fix\n  {}\n",
        code.id,
        code.summary,
        word(&code.level),
        page.compares,
        page.matters,
        page.reports,
        page.fix
    )
}
