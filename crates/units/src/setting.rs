//! Settings: whatever a user can set, declared once with name, domain, unit, default and help. Keys of scenario files, knobs of the endpoint
//! and parameters of algorithms and queue disciplines are all [`Setting`]s; error messages, JSON Schema, reference pages and `fanin list`
//! are made from them.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Whose details to follow where sources differ: decides defaults of parameters only.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Profile {
    /// The RFCs as written.
    #[default]
    Rfc,
    /// NS2's agents and the papers that rest on them.
    Ns2,
    /// A current Linux kernel.
    Linux,
}

/// What a setting accepts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Domain {
    /// A whole number in the closed interval.
    Count {
        /// Least.
        min: u64,
        /// Greatest.
        max: u64,
    },
    /// A real number in the closed interval.
    Number {
        /// Least.
        min: f64,
        /// Greatest.
        max: f64,
    },
    /// A time with its unit.
    Time,
    /// A rate with its unit; never zero.
    Rate,
    /// A size with its unit.
    Size,
    /// A queue length in packets or bytes.
    Queue,
    /// `true` or `false`.
    Flag,
    /// One of these words.
    Word(&'static [&'static str]),
    /// Any text; who declares it checks it.
    Text,
    /// A text or a list of texts.
    Texts,
    /// A list of whole numbers, or how many.
    Seeds,
    /// Sizes drawn one by one: a constant, `{ uniform = [..] }`, `{ exponential = .. }`, or the name or path of a distribution.
    Sizes,
    /// Times drawn one by one, likewise.
    Times,
    /// A list of tables with these keys.
    Tables(&'static [Setting]),
    /// A table whose keys are names the user chooses, each with a text or a list of texts.
    Groups,
    /// A `[cc]` table.
    Cc,
    /// A `[stack]` table.
    Stack,
    /// What hosts are made of: a preset's name, a file, or a table.
    Hosts,
    /// A queue discipline with its parameters.
    Discipline,
}

impl Domain {
    /// What to write, with its article.
    pub fn expects(&self) -> String {
        match self {
            Domain::Count { min, max: u64::MAX } => format!("a whole number, at least {min}"),
            Domain::Count { min, max } => format!("a whole number from {min} to {max}"),
            Domain::Number { min, max } if *max == f64::INFINITY => format!("a number, at least {min}"),
            Domain::Number { min, max } => format!("a number from {min} to {max}"),
            Domain::Time => "a time such as \"50us\" (ps, ns, us, ms, s, min)".to_owned(),
            Domain::Rate => "a rate such as \"10Gbps\" (bps, kbps, Mbps, Gbps, Tbps)".to_owned(),
            Domain::Size => "a size such as \"256KB\" (B, KB, MB, GB, KiB, MiB, GiB)".to_owned(),
            Domain::Queue => "a queue length such as \"100p\" (packets) or \"350KB\"".to_owned(),
            Domain::Flag => "true or false".to_owned(),
            Domain::Word(words) => format!("one of {}", words.join(", ")),
            Domain::Text => "text in quotes".to_owned(),
            Domain::Texts => "a text in quotes or a list of them".to_owned(),
            Domain::Seeds => "a count such as 10 or a list such as [1, 2, 3]".to_owned(),
            Domain::Sizes => "a size such as \"8KB\", { uniform = [\"2KB\", \"10KB\"] }, { exponential = \"8KB\" }, or the name of a \
                              distribution such as \"websearch_pfabric\""
                .to_owned(),
            Domain::Times => "a time such as \"1ms\", { uniform = [\"1ms\", \"2ms\"] }, { exponential = \"1ms\" }, or the name of a \
                              distribution such as \"trim_http_train_gap\""
                .to_owned(),
            Domain::Tables(_) => "a list of tables".to_owned(),
            Domain::Groups => "a table of names, each with a list of hosts".to_owned(),
            Domain::Cc => "a table such as { name = \"dctcp\" }".to_owned(),
            Domain::Stack => "a table such as { profile = \"linux\" }".to_owned(),
            Domain::Hosts => "a name such as \"25g\", a file such as \"measured.toml\", or a table".to_owned(),
            Domain::Discipline => "a table such as { name = \"red\" }".to_owned(),
        }
    }
}

/// A default.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Preset {
    /// As it would be written.
    Text(&'static str),
    /// In the setting's unit.
    Number(f64),
    /// On or off.
    Flag(bool),
}

/// Something that a user can set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Setting {
    /// As written in files and after `--set`. A parameter's is unique over all algorithms.
    pub name: &'static str,
    /// What it accepts.
    pub domain: Domain,
    /// In force unless set; `None`: it must be set, or nothing is in force, as `help` says.
    pub default: Option<Preset>,
    /// Default of a parameter under NS2's profile where it differs.
    pub ns2: Option<Preset>,
    /// Default of a parameter under Linux's profile where it differs.
    pub linux: Option<Preset>,
    /// It must be set.
    pub required: bool,
    /// Zero is not accepted (times, sizes).
    pub positive: bool,
    /// Unit of a bare number, empty when it has none. See [`Setting::quantity`].
    pub unit: &'static str,
    /// Paper section, RFC or kernel file that defines a parameter.
    pub source: &'static str,
    /// One sentence.
    pub help: &'static str,
}

/// Keys of files: the name, what it accepts, one sentence.
impl Setting {
    /// Of any domain.
    pub const fn of(name: &'static str, domain: Domain, help: &'static str) -> Setting {
        Setting {
            name,
            domain,
            default: None,
            ns2: None,
            linux: None,
            required: false,
            positive: false,
            unit: "",
            source: "",
            help,
        }
    }
    /// A whole number, at least `min`.
    pub const fn count(name: &'static str, min: u64, help: &'static str) -> Setting {
        Setting::of(name, Domain::Count { min, max: u64::MAX }, help)
    }
    /// A whole number in an interval.
    pub const fn count_to(name: &'static str, min: u64, max: u64, help: &'static str) -> Setting {
        Setting::of(name, Domain::Count { min, max }, help)
    }
    /// A real number in an interval.
    pub const fn number(name: &'static str, min: f64, max: f64, help: &'static str) -> Setting {
        Setting::of(name, Domain::Number { min, max }, help)
    }
    /// A time.
    pub const fn time(name: &'static str, help: &'static str) -> Setting {
        Setting::of(name, Domain::Time, help)
    }
    /// A rate.
    pub const fn rate(name: &'static str, help: &'static str) -> Setting {
        Setting::of(name, Domain::Rate, help)
    }
    /// A size.
    pub const fn size(name: &'static str, help: &'static str) -> Setting {
        Setting::of(name, Domain::Size, help)
    }
    /// A queue length.
    pub const fn queue(name: &'static str, help: &'static str) -> Setting {
        Setting::of(name, Domain::Queue, help)
    }
    /// On or off.
    pub const fn flag(name: &'static str, help: &'static str) -> Setting {
        Setting::of(name, Domain::Flag, help)
    }
    /// One of some words.
    pub const fn word(name: &'static str, words: &'static [&'static str], help: &'static str) -> Setting {
        Setting::of(name, Domain::Word(words), help)
    }
    /// Text.
    pub const fn text(name: &'static str, help: &'static str) -> Setting {
        Setting::of(name, Domain::Text, help)
    }
    /// A text or several.
    pub const fn texts(name: &'static str, help: &'static str) -> Setting {
        Setting::of(name, Domain::Texts, help)
    }
    /// Sizes drawn one by one.
    pub const fn sizes(name: &'static str, help: &'static str) -> Setting {
        Setting::of(name, Domain::Sizes, help)
    }
    /// Times drawn one by one.
    pub const fn times(name: &'static str, help: &'static str) -> Setting {
        Setting::of(name, Domain::Times, help)
    }
    /// States the default, as it would be written.
    pub const fn default(mut self, text: &'static str) -> Setting {
        self.default = Some(Preset::Text(text));
        self
    }
    /// Must be set.
    pub const fn required(mut self) -> Setting {
        self.required = true;
        self
    }
    /// Refuses zero.
    pub const fn positive(mut self) -> Setting {
        self.positive = true;
        self
    }
    /// The default as it would be written, if it has one.
    pub const fn default_text(&self) -> Option<&'static str> {
        match self.default {
            Some(Preset::Text(text)) => Some(text),
            _ => None,
        }
    }
}

/// Parameters of algorithms and queue disciplines: they always have a default, and [`Setting::doc`] says who defines them.
impl Setting {
    /// A number with its default and closed range.
    pub const fn parameter(name: &'static str, default: f64, min: f64, max: f64) -> Setting {
        let mut setting = Setting::number(name, min, max, "");
        setting.default = Some(Preset::Number(default));
        setting
    }
    /// A switch with its default.
    pub const fn switch(name: &'static str, default: bool) -> Setting {
        let mut setting = Setting::flag(name, "");
        setting.default = Some(Preset::Flag(default));
        setting
    }
    /// A choice; the first word is the default.
    pub const fn choice(name: &'static str, words: &'static [&'static str]) -> Setting {
        Setting::word(name, words, "").default(words[0])
    }
    /// A text that its owner checks; empty unless set.
    pub const fn free_text(name: &'static str) -> Setting {
        Setting::text(name, "").default("")
    }
    /// States the unit.
    pub const fn unit(mut self, unit: &'static str) -> Setting {
        self.unit = unit;
        self
    }
    /// Another default under NS2's profile (a switch: 0 or 1).
    pub const fn ns2(mut self, default: f64) -> Setting {
        self.ns2 = Some(self.preset(default));
        self
    }
    /// Another default under Linux's profile (a switch: 0 or 1).
    pub const fn linux(mut self, default: f64) -> Setting {
        self.linux = Some(self.preset(default));
        self
    }
    /// Another default of a choice under Linux's profile.
    pub const fn linux_word(mut self, word: &'static str) -> Setting {
        self.linux = Some(Preset::Text(word));
        self
    }
    /// Says who defines it and what it does.
    pub const fn doc(mut self, source: &'static str, help: &'static str) -> Setting {
        self.source = source;
        self.help = help;
        self
    }

    const fn preset(&self, number: f64) -> Preset {
        match self.domain {
            Domain::Flag => Preset::Flag(number != 0.0),
            _ => Preset::Number(number),
        }
    }

    /// A parameter's value in force unless set.
    pub fn default_under(&self, profile: Profile) -> Value {
        let special = match profile {
            Profile::Rfc => None,
            Profile::Ns2 => self.ns2,
            Profile::Linux => self.linux,
        };
        match special.or(self.default) {
            Some(Preset::Number(x)) => Value::Number(x),
            Some(Preset::Flag(x)) => Value::Flag(x),
            Some(Preset::Text(text)) => Value::Word(text.to_owned()),
            None => Value::Word(String::new()),
        }
    }

    /// Parameters in seconds, bytes or bits per second are written with a unit in files; others bare.
    pub fn quantity(&self) -> Option<Domain> {
        match self.unit {
            "s" => Some(Domain::Time),
            "B" | "bytes" => Some(Domain::Size),
            "bps" | "bit/s" => Some(Domain::Rate),
            _ => None,
        }
    }

    /// What to write, with its article and unit.
    pub fn expects(&self) -> String {
        let unit = if self.unit.is_empty() { String::new() } else { format!(" {}", self.unit) };
        self.domain.expects() + &unit
    }

    fn check(&self, value: &Value) -> Result<(), SettingError> {
        let ok = match (self.domain, value) {
            (Domain::Number { min, max }, Value::Number(x)) => (min..=max).contains(x),
            (Domain::Flag, Value::Flag(_)) => true,
            (Domain::Word(words), Value::Word(w)) => words.contains(&w.as_str()),
            (Domain::Text, Value::Word(_)) => true,
            _ => false,
        };
        if ok {
            return Ok(());
        }
        Err(SettingError::BadValue { name: self.name, value: value.to_string(), expected: self.expects() })
    }
}

/// A parameter's value. Times are seconds. The order of the variants is their encoding in what the virtual kernel reads.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Value {
    /// A real number in the parameter's unit.
    Number(f64),
    /// A switch.
    Flag(bool),
    /// One of the listed words.
    Word(String),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Number(x) => write!(f, "{x}"),
            Value::Flag(x) => write!(f, "{x}"),
            Value::Word(x) => f.write_str(x),
        }
    }
}

/// Why a parameter cannot be set.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum SettingError {
    /// No component of the algorithm declares it.
    #[error("`{algorithm}` has no parameter `{name}`{}", hint(known))]
    Unknown {
        /// The algorithm as named.
        algorithm: String,
        /// The parameter as named.
        name: String,
        /// The parameters that it has.
        known: Vec<&'static str>,
    },
    /// The value is outside the declared domain.
    #[error("parameter `{name}` = {value}: it must be {expected}")]
    BadValue {
        /// The parameter.
        name: &'static str,
        /// What was given.
        value: String,
        /// What would be accepted.
        expected: String,
    },
}

fn hint(known: &[&str]) -> String {
    if known.is_empty() { "; it has none".to_owned() } else { format!("; it has {}", known.join(", ")) }
}

/// Parameters a user set, by name.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Args(BTreeMap<String, Value>);

impl Args {
    /// Sets one.
    pub fn set(&mut self, name: impl Into<String>, value: Value) {
        self.0.insert(name.into(), value);
    }
    /// The names that were set, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
    /// Names and values, in order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }
    /// True if nothing was set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The checked value of `setting`, or its default.
    ///
    /// # Errors
    /// [`SettingError::BadValue`] when the value that was set is outside the declared domain.
    pub fn value(&self, setting: &Setting, profile: Profile) -> Result<Value, SettingError> {
        match self.0.get(setting.name) {
            Some(value) => setting.check(value).map(|()| value.clone()),
            None => Ok(setting.default_under(profile)),
        }
    }
    /// A number; see [`Self::value`].
    pub fn number(&self, setting: &Setting, profile: Profile) -> Result<f64, SettingError> {
        Ok(match self.value(setting, profile)? {
            Value::Number(x) => x,
            Value::Flag(_) | Value::Word(_) => f64::NAN,
        })
    }
    /// A switch; see [`Self::value`].
    pub fn flag(&self, setting: &Setting, profile: Profile) -> Result<bool, SettingError> {
        Ok(matches!(self.value(setting, profile)?, Value::Flag(true)))
    }
    /// A word; see [`Self::value`].
    pub fn word(&self, setting: &Setting, profile: Profile) -> Result<String, SettingError> {
        Ok(self.value(setting, profile)?.to_string())
    }
}
