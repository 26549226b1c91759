//! Parameters of algorithms and queue disciplines: declared once with default, range, unit and source; everything else (command line, docs, checks) follows.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use thiserror::Error;

/// Whose details to follow where sources differ: decides parameter defaults only.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Flavour {
    /// The RFCs as written.
    #[default]
    Rfc,
    /// NS2's agents and the papers that rest on them.
    Ns2,
    /// A current Linux kernel.
    Linux,
}

/// A parameter's value. Times are seconds.
#[derive(Clone, PartialEq, Debug)]
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

/// What a parameter accepts, and what it is unless set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Domain {
    /// Any number in the closed interval.
    Number {
        /// Unless set.
        default: f64,
        /// Least.
        min: f64,
        /// Greatest.
        max: f64,
    },
    /// On or off.
    Flag {
        /// Unless set.
        default: bool,
    },
    /// One of these words, the first unless set.
    Word(&'static [&'static str]),
    /// Any text; who declares it checks it. Empty unless set.
    Text,
}

/// One declared parameter.
#[derive(Clone, Copy, Debug)]
pub struct Param {
    /// Key in a scenario's `[cc]` table and after `--set`. Unique over all algorithms.
    pub name: &'static str,
    /// Accepted values and default.
    pub domain: Domain,
    /// Default under NS2's flavour where it differs.
    pub ns2: Option<f64>,
    /// Default under Linux's flavour where it differs.
    pub linux: Option<f64>,
    /// Default of a choice under Linux's flavour where it differs.
    pub linux_word: Option<&'static str>,
    /// Unit of a number, empty when it has none.
    pub unit: &'static str,
    /// Paper section, RFC or kernel file that defines it.
    pub source: &'static str,
    /// One sentence.
    pub help: &'static str,
}

impl Param {
    /// A number with its default and closed range.
    pub const fn number(name: &'static str, default: f64, min: f64, max: f64) -> Param {
        Param {
            name,
            domain: Domain::Number { default, min, max },
            ns2: None,
            linux: None,
            linux_word: None,
            unit: "",
            source: "",
            help: "",
        }
    }
    /// A switch with its default.
    pub const fn flag(name: &'static str, default: bool) -> Param {
        Param {
            name,
            domain: Domain::Flag { default },
            ns2: None,
            linux: None,
            linux_word: None,
            unit: "",
            source: "",
            help: "",
        }
    }
    /// A choice; the first word is the default.
    pub const fn word(name: &'static str, words: &'static [&'static str]) -> Param {
        Param {
            name,
            domain: Domain::Word(words),
            ns2: None,
            linux: None,
            linux_word: None,
            unit: "",
            source: "",
            help: "",
        }
    }
    /// A text that its owner checks.
    pub const fn text(name: &'static str) -> Param {
        Param { name, domain: Domain::Text, ns2: None, linux: None, linux_word: None, unit: "", source: "", help: "" }
    }
    /// States the unit.
    pub const fn unit(mut self, unit: &'static str) -> Param {
        self.unit = unit;
        self
    }
    /// Another default under NS2's flavour (a flag: 0 or 1).
    pub const fn ns2(mut self, default: f64) -> Param {
        self.ns2 = Some(default);
        self
    }
    /// Another default under Linux's flavour (a flag: 0 or 1).
    pub const fn linux(mut self, default: f64) -> Param {
        self.linux = Some(default);
        self
    }
    /// Another default of a choice under Linux's flavour.
    pub const fn linux_word(mut self, word: &'static str) -> Param {
        self.linux_word = Some(word);
        self
    }
    /// Says what it does and who says so.
    pub const fn doc(mut self, source: &'static str, help: &'static str) -> Param {
        self.source = source;
        self.help = help;
        self
    }

    /// The value in force unless set.
    pub fn default(&self, flavour: Flavour) -> Value {
        let special = match flavour {
            Flavour::Rfc => None,
            Flavour::Ns2 => self.ns2,
            Flavour::Linux => self.linux,
        };
        match (self.domain, special) {
            (Domain::Number { .. }, Some(x)) => Value::Number(x),
            (Domain::Number { default, .. }, None) => Value::Number(default),
            (Domain::Flag { .. }, Some(x)) => Value::Flag(x != 0.0),
            (Domain::Flag { default }, None) => Value::Flag(default),
            (Domain::Word(words), _) => {
                let special = self.linux_word.filter(|_| flavour == Flavour::Linux);
                Value::Word(special.unwrap_or(words[0]).to_owned())
            }
            (Domain::Text, _) => Value::Word(String::new()),
        }
    }

    fn check(&self, value: &Value) -> Result<(), ParamError> {
        let ok = match (self.domain, value) {
            (Domain::Number { min, max, .. }, Value::Number(x)) => (min..=max).contains(x),
            (Domain::Flag { .. }, Value::Flag(_)) => true,
            (Domain::Word(words), Value::Word(w)) => words.contains(&w.as_str()),
            (Domain::Text, Value::Word(_)) => true,
            _ => false,
        };
        if ok {
            return Ok(());
        }
        let expected = match self.domain {
            Domain::Number { min, max, .. } => {
                let unit = if self.unit.is_empty() { String::new() } else { format!(" {}", self.unit) };
                format!("a number from {min} to {max}{unit}")
            }
            Domain::Flag { .. } => "true or false".to_owned(),
            Domain::Word(words) => format!("one of {}", words.join(", ")),
            Domain::Text => "a text".to_owned(),
        };
        Err(ParamError::BadValue { name: self.name, value: value.to_string(), expected })
    }
}

/// Why a parameter cannot be set.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum ParamError {
    /// No component of the algorithm declares it.
    #[error("`{algorithm}` has no parameter `{name}`{}", hint(known))]
    Unknown {
        /// The algorithm as named.
        algorithm: String,
        /// The parameter as named.
        name: String,
        /// The parameters there are.
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
#[derive(Clone, PartialEq, Debug, Default)]
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

    /// The checked value of `param`, or its default.
    ///
    /// # Errors
    /// [`ParamError::BadValue`] when the value that was set is outside the declared domain.
    pub fn value(&self, param: &Param, flavour: Flavour) -> Result<Value, ParamError> {
        match self.0.get(param.name) {
            Some(value) => param.check(value).map(|()| value.clone()),
            None => Ok(param.default(flavour)),
        }
    }
    /// A number; see [`Self::value`].
    pub fn number(&self, param: &Param, flavour: Flavour) -> Result<f64, ParamError> {
        Ok(match self.value(param, flavour)? {
            Value::Number(x) => x,
            Value::Flag(_) | Value::Word(_) => f64::NAN,
        })
    }
    /// A switch; see [`Self::value`].
    pub fn flag(&self, param: &Param, flavour: Flavour) -> Result<bool, ParamError> {
        Ok(matches!(self.value(param, flavour)?, Value::Flag(true)))
    }
    /// A word; see [`Self::value`].
    pub fn word(&self, param: &Param, flavour: Flavour) -> Result<String, ParamError> {
        Ok(self.value(param, flavour)?.to_string())
    }
}
