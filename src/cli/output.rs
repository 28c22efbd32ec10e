//! Where results go: standard output and files, each in its form, with colour where it belongs; a closed pipe is no
//! error.

use super::CliError;
use super::arguments::{Colour, Format, OutputArgs};
use crate::model::Artifact;
use crate::render::text::TextOptions;
use crate::render::{csv, github, json, junit, markdown, sarif, text};
use crate::report::Report;
use crate::target::UsageError;
use clap::ValueEnum;
use std::io::{ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};

/// The forms that what a file is can take; the others are for reports.
pub const SHOWN: [Format; 4] = [Format::Text, Format::Json, Format::Jsonl, Format::Csv];

/// The opened destinations.
pub struct Destinations(Vec<(Format, Box<dyn Write>)>);

impl OutputArgs {
    /// `--json` is short for `--format json`.
    pub fn format(&self) -> Format {
        if self.json { Format::Json } else { self.format }
    }

    /// `--output` values: form and path; a path without a form takes the place of standard output.
    fn files(&self) -> impl Iterator<Item = (Option<Format>, &Path)> {
        self.output.iter().map(|text| match text.split_once('=') {
            Some((word, path)) if Format::from_str(word, false).is_ok() => {
                (Format::from_str(word, false).ok(), path.as_ref())
            }
            _ => (None, text.as_ref()),
        })
    }

    /// How text is laid out: a file or pipe has no width.
    pub fn text_options(&self) -> TextOptions {
        let is_terminal = std::io::stdout().is_terminal() && self.files().all(|(form, _)| form.is_some());
        let width = is_terminal.then(terminal_size::terminal_size).flatten().map(|(w, _)| usize::from(w.0));
        TextOptions { width, is_verbose: self.verbose, ..TextOptions::default() }
    }

    /// Every form that is asked for, by a flag or in front of a file.
    pub fn formats(&self) -> Vec<Format> {
        std::iter::once(self.format()).chain(self.files().filter_map(|(form, _)| form)).collect()
    }

    /// A word in front of `=` that is no form would silently become part of a file's name.
    fn check_forms(&self) -> Result<(), CliError> {
        for text in &self.output {
            if let Some((word, _)) = text.split_once('=')
                && !word.is_empty()
                && word.chars().all(|c| c.is_ascii_alphabetic())
                && Format::from_str(word, false).is_err()
            {
                let names: Vec<String> = Format::value_variants()
                    .iter()
                    .filter_map(|format| Some(format.to_possible_value()?.get_name().to_owned()))
                    .collect();
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                return Err(UsageError::unknown_word("--output", word, &names).into());
            }
        }
        Ok(())
    }

    /// Opens all destinations, so that a wrong path is found before the work starts. None of them, nor the baseline that
    /// is to be written, may be among the `inputs`.
    pub fn open(&self, inputs: &[PathBuf], baseline: Option<&Path>) -> Result<Destinations, CliError> {
        self.check_forms()?;
        for written in self.files().map(|(_, path)| path).chain(baseline) {
            if inputs.iter().any(|input| is_same_file(input, written)) {
                let what = format!("{} is looked at, and would be overwritten", written.display());
                return Err(CliError::usage(what));
            }
        }
        let choice = match self.color {
            Colour::Auto => anstream::ColorChoice::Auto,
            Colour::Always => anstream::ColorChoice::AlwaysAnsi,
            Colour::Never => anstream::ColorChoice::Never,
        };
        let mut open: Vec<(Format, Box<dyn Write>)> = Vec::new();
        for (form, path) in self.files() {
            let file = std::fs::OpenOptions::new().create(true).append(is_appended(path)).write(true).open(path);
            let file = file.map_err(|e| CliError::usage(format!("--output: cannot write {}: {e}", path.display())))?;
            if !is_appended(path) {
                // devices and pipes cannot be cut, which is no harm
                let _ = file.set_len(0);
            }
            let stream = anstream::AutoStream::new(file, choice);
            open.push((form.unwrap_or(self.format()), Box::new(std::io::BufWriter::new(stream))));
        }
        if self.files().all(|(form, _)| form.is_some()) {
            let stdout = anstream::AutoStream::new(std::io::stdout(), choice);
            open.insert(0, (self.format(), Box::new(std::io::BufWriter::new(stdout))));
        }
        Ok(Destinations(open))
    }

    /// Writes a report to each destination in its form.
    pub fn write_report(&self, report: &Report, destinations: Destinations) -> Result<(), CliError> {
        destinations.write_each(|format, out| match format {
            Format::Text => text::render_report(report, &self.text_options(), out),
            Format::Json => json::render_report(report, out),
            Format::Jsonl => json::render_report_lines(report, out),
            Format::Markdown => markdown::render(report, out),
            Format::Github => github::render(report, out),
            Format::Sarif => sarif::render(report, out),
            Format::Junit => junit::render(report, out),
            Format::Csv => csv::render_report(report, out),
        })
    }

    /// Writes what files are; see [`SHOWN`].
    pub fn write_show(
        &self,
        artifacts: &[Artifact],
        options: &TextOptions,
        destinations: Destinations,
    ) -> Result<(), CliError> {
        destinations.write_each(|format, out| match format {
            Format::Json => json::render_show(artifacts, &options.only, out),
            Format::Jsonl => json::render_show_lines(artifacts, &options.only, out),
            Format::Csv => csv::render_show(artifacts, out),
            _ => artifacts.iter().enumerate().try_for_each(|(at, artifact)| {
                if at > 0 {
                    writeln!(out)?;
                }
                text::render_show(artifact, options, out)
            }),
        })
    }

    /// Writes plain text.
    pub fn write_text(&self, text: &str) -> Result<(), CliError> {
        self.open(&[], None)?.write_each(|_, out| out.write_all(text.as_bytes()))
    }
}

/// The same file by whatever path or hard link; one that is not there yet is no input.
fn is_same_file(a: &Path, b: &Path) -> bool {
    matches!((identity(a), identity(b)), (Ok(a), Ok(b)) if a == b)
}

#[cfg(unix)]
fn identity(path: &Path) -> std::io::Result<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(path).map(|file| (file.dev(), file.ino()))
}
#[cfg(not(unix))]
fn identity(path: &Path) -> std::io::Result<PathBuf> {
    path.canonicalize()
}

impl Destinations {
    /// Lets `render` write to each; whoever reads us may stop reading.
    pub fn write_each(self, render: impl Fn(Format, &mut dyn Write) -> std::io::Result<()>) -> Result<(), CliError> {
        for (format, mut out) in self.0 {
            match render(format, &mut *out).and_then(|()| out.flush()) {
                Err(e) if e.kind() == ErrorKind::BrokenPipe => {}
                Err(e) => return Err(CliError::Io(format!("cannot write the output: {e}"))),
                Ok(()) => {}
            }
        }
        Ok(())
    }
}

/// GitHub's job summary belongs to all steps of a job: what stands there stays.
fn is_appended(path: &Path) -> bool {
    std::env::var_os("GITHUB_STEP_SUMMARY").is_some_and(|summary| path.as_os_str() == summary)
}
