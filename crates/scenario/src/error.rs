//! What is wrong with a scenario, where, and what to do about it.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use serde::Serialize;
use std::fmt;
use std::ops::Deref;

/// One problem in what the user wrote.
#[derive(Clone, PartialEq, Debug)]
pub struct ScenarioError(Box<Report>);

/// The parts of a [`ScenarioError`].
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Report {
    /// Stable code, such as `scenario::unknown-key`.
    pub code: &'static str,
    /// The file as it was named.
    pub file: String,
    /// Where it says so.
    pub place: Place,
    /// Dotted path of the key, as in `topology.buffer` or `workload[0].bytes`; empty for the file as a whole.
    pub key: String,
    /// One clear sentence.
    pub message: String,
    /// What would be accepted, with its unit.
    pub expected: Option<String>,
    /// The valid key or name that was probably meant.
    pub nearest: Option<String>,
}

/// Where a value was written.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// In the file, counted from 1.
    Line {
        /// Line.
        line: u32,
        /// Column in characters.
        column: u32,
    },
    /// In an option, as it was typed.
    CommandLine(String),
    /// Nowhere: it is missing, or the file as a whole is meant.
    #[default]
    Nowhere,
}

impl ScenarioError {
    /// A problem with no place yet.
    pub fn new(code: &'static str, message: impl Into<String>) -> ScenarioError {
        ScenarioError(Box::new(Report {
            code,
            file: String::new(),
            place: Place::Nowhere,
            key: String::new(),
            message: message.into(),
            expected: None,
            nearest: None,
        }))
    }
    /// Says where.
    #[must_use]
    pub fn at(mut self, file: &str, place: &Place, key: impl Into<String>) -> ScenarioError {
        self.0.file = file.to_owned();
        self.0.place = place.clone();
        self.0.key = key.into();
        self
    }
    /// Says what would be accepted.
    #[must_use]
    pub fn expected(mut self, what: impl Into<String>) -> ScenarioError {
        self.0.expected = Some(what.into());
        self
    }
    /// Says what was probably meant, if anything.
    #[must_use]
    pub fn nearest(mut self, name: Option<String>) -> ScenarioError {
        self.0.nearest = name;
        self
    }
}

impl ScenarioError {
    /// The same for a terminal, with the line of the file that it is about; none where it is about no line of a file that can be read.
    pub fn with_source(&self) -> Option<String> {
        let Place::Line { line, column } = self.place else { return None };
        // A pipe has given its text already.
        std::fs::metadata(&self.file).ok().filter(std::fs::Metadata::is_file)?;
        let text = std::fs::read_to_string(&self.file).ok()?;
        let before: usize = text.split_inclusive('\n').take((line as usize).saturating_sub(1)).map(str::len).sum();
        let from = before
            + text.get(before..)?.chars().take((column as usize).saturating_sub(1)).map(char::len_utf8).sum::<usize>();
        // From there to the end of a word or of a text in quotes.
        let rest = text.get(from..)?.lines().next().unwrap_or_default();
        let length = match rest.strip_prefix('"') {
            Some(quoted) => quoted.find('"').map_or(rest.len(), |end| end + 2),
            None => rest.find([' ', '=', ']', ',', '}']).unwrap_or(rest.len()),
        };
        let title = if self.key.is_empty() { self.message.clone() } else { format!("{}: {}", self.key, self.message) };
        // The excerpt's own lines are all that it has.
        let (title, file) = (on_one_line(&title), on_one_line(&self.file));
        let mark = AnnotationKind::Primary.span(from..from + length);
        let mut report: Group<'_> = Level::ERROR
            .primary_title(title)
            .element(Snippet::source(text.as_str()).path(file.as_str()).annotation(mark));
        if let Some(nearest) = &self.nearest {
            report = report.element(Level::HELP.message(on_one_line(&format!("did you mean `{nearest}`?"))));
        } else if let Some(expected) = &self.expected {
            report = report.element(Level::HELP.message(on_one_line(&format!("expected {expected}"))));
        }
        Some(Renderer::plain().render(&[report]))
    }
}

/// Text of a user's without controls, each as it is escaped in Rust.
fn on_one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { c.escape_default().to_string() } else { c.to_string() }).collect()
}

impl Deref for ScenarioError {
    type Target = Report;
    fn deref(&self) -> &Report {
        &self.0
    }
}

impl std::error::Error for ScenarioError {}

impl fmt::Display for ScenarioError {
    /// `incast.toml:3:10: topology.buffer: ...; did you mean ...?`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::Line { line, column } => write!(f, "{}:{line}:{column}: ", self.file)?,
            Place::CommandLine(option) => write!(f, "command line `{option}`: ")?,
            Place::Nowhere if self.file.is_empty() => {}
            Place::Nowhere => write!(f, "{}: ", self.file)?,
        }
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.message)?;
        if let Some(expected) = &self.expected {
            write!(f, "; expected {expected}")?;
        }
        if let Some(nearest) = &self.nearest {
            write!(f, "; did you mean `{nearest}`?")?;
        }
        Ok(())
    }
}

/// As [`fanin_cc::nearest`], to keep.
pub(crate) fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    fanin_cc::nearest(name, candidates).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_the_file_is_shown_with_what_is_meant() {
        let folder = std::env::temp_dir().join(format!("fanin-error-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("x.toml");
        std::fs::write(&file, "[topology]\nbufer = \"100p\"\n").unwrap();
        let place = Place::Line { line: 2, column: 1 };
        let error = ScenarioError::new("scenario::unknown-key", "unknown key `bufer`")
            .at(&file.display().to_string(), &place, "topology.bufer")
            .nearest(Some("buffer".to_owned()));
        let shown = error.with_source().unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(shown.contains("topology.bufer: unknown key `bufer`"), "{shown}");
        assert!(shown.contains("bufer = \"100p\"") && shown.contains("did you mean `buffer`?"), "{shown}");
        assert_eq!(error.clone().at("gone.toml", &place, "").with_source(), None);
    }
}
