//! Reads a table by its declared keys: unknown keys are refused at once with the nearest valid one, values with what was expected,
//! and keys that nothing asked for are refused at the end.

use crate::draw::Draw;
use crate::error::{Place, ScenarioError, nearest};
use crate::kind::other_kind;
use crate::tree::{Entry, Item, Node, Table};
use fanin_units::{Bytes, Domain, Duration, ParseUnitError, QueueLimit, Rate, Setting};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::Path;

/// Where a document came from.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    /// Its name in messages.
    pub file: &'a str,
    /// What relative paths in it start from.
    pub folder: &'a Path,
}

/// A table being read.
pub(crate) struct Reader<'a> {
    pub context: Context<'a>,
    pub path: String,
    place: Place,
    table: &'a Table,
    keys: Vec<&'static Setting>,
    taken: RefCell<BTreeSet<&'static str>>,
}

static EMPTY: Table = Table { entries: Vec::new() };

impl<'a> Reader<'a> {
    /// Refuses keys that are not among `keys`.
    pub fn new(
        context: Context<'a>,
        path: impl Into<String>,
        node: Option<&'a Node>,
        keys: &[&'static [Setting]],
    ) -> Result<Reader<'a>, ScenarioError> {
        let path = path.into();
        let (table, place) = match node {
            None => (&EMPTY, Place::Nowhere),
            Some(Node { item: Item::Table(table), place }) => (table, place.clone()),
            Some(other) => {
                return Err(ScenarioError::new(
                    "scenario::wrong-kind",
                    format!("it is {}, not a table", other.item.what()),
                )
                .at(context.file, &other.place, path));
            }
        };
        let keys: Vec<&'static Setting> = keys.iter().flat_map(|k| k.iter()).collect();
        let reader = Reader { context, path, place, table, keys, taken: RefCell::default() };
        for entry in &table.entries {
            if !reader.keys.iter().any(|k| k.name == entry.key) {
                return Err(reader.unknown(entry));
            }
        }
        Ok(reader)
    }

    fn unknown(&self, entry: &Entry) -> ScenarioError {
        let names = || self.keys.iter().map(|k| k.name);
        if self.path.is_empty()
            && let Some(message) = other_kind(self.table, &names().collect::<Vec<_>>())
        {
            return ScenarioError::new("scenario::other-file", message).at(self.context.file, &Place::Nowhere, "");
        }
        let near = nearest(&entry.key, names());
        let listed = |keys: Vec<&str>| keys.join(", ");
        let message = match (&near, &entry.place) {
            (Some(_), _) => format!("unknown key `{}`", entry.key),
            (None, Place::CommandLine(_)) if self.path.is_empty() && !matches!(entry.node.item, Item::Table(_)) => {
                format!(
                    "unknown key `{}`; name its table too: the tables here are {}",
                    entry.key,
                    listed(names().filter(|&k| k != "title").collect())
                )
            }
            (None, _) => format!("unknown key `{}`; the keys here are {}", entry.key, listed(names().collect())),
        };
        ScenarioError::new("scenario::unknown-key", message)
            .at(self.context.file, &entry.place, self.key_path(&entry.key))
            .nearest(near)
    }

    /// Dotted path of a key of this table.
    pub fn key_path(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// A problem with this table as a whole.
    pub fn fail_here(&self, code: &'static str, message: impl Into<String>) -> ScenarioError {
        ScenarioError::new(code, message).at(self.context.file, &self.place, self.path.clone())
    }

    /// A problem with the value of `key`.
    pub fn fail(&self, key: &str, code: &'static str, message: impl Into<String>) -> ScenarioError {
        let place = self.table.get(key).map_or(&self.place, |n| &n.place);
        ScenarioError::new(code, message).at(self.context.file, place, self.key_path(key))
    }

    /// A semantic problem with the value of `key`.
    pub fn refuse(&self, key: &str, message: impl Into<String>) -> ScenarioError {
        self.fail(key, "scenario::not-possible", message)
    }

    fn declared(&self, name: &str) -> &'static Setting {
        match self.keys.iter().find(|k| k.name == name) {
            Some(key) => key,
            None => unreachable!("`{name}` is read but not declared: a test reads every table"),
        }
    }

    /// The table has such a key.
    pub fn declares(&self, name: &str) -> bool {
        self.keys.iter().any(|k| k.name == name)
    }

    /// The user set it.
    pub fn has(&self, name: &str) -> bool {
        self.table.get(name).is_some()
    }

    /// The node itself, marked as read.
    pub fn node(&self, name: &str) -> Option<&'a Node> {
        let key = self.declared(name);
        self.taken.borrow_mut().insert(key.name);
        self.table.get(name)
    }

    /// The value of a key that has a default or is required.
    pub fn get<T: FromNode>(&self, name: &str) -> Result<T, ScenarioError> {
        let key = self.declared(name);
        match (self.opt(name)?, key.default_text()) {
            (Some(value), _) => Ok(value),
            (None, Some(text)) => T::from_node(self, key, &default_node(key, text)),
            (None, None) => Err(self
                .fail_here("scenario::missing-key", format!("`{name}` must be set: {}", key.help))
                .expected(key.domain.expects())),
        }
    }

    /// The value of a key if it was set.
    pub fn opt<T: FromNode>(&self, name: &str) -> Result<Option<T>, ScenarioError> {
        let key = self.declared(name);
        self.node(name).map(|node| T::from_node(self, key, node)).transpose()
    }

    /// The value of a key if it was set or has a default, else `other`.
    pub fn or<T: FromNode>(&self, name: &str, other: T) -> Result<T, ScenarioError> {
        if self.declared(name).default.is_some() { self.get(name) } else { Ok(self.opt(name)?.unwrap_or(other)) }
    }

    /// Refuses keys that nothing asked for; `why` says what they would need.
    pub fn finish(&self) -> Result<(), ScenarioError> {
        let taken = self.taken.borrow();
        match self.table.entries.iter().find(|e| !taken.contains(e.key.as_str())) {
            None => Ok(()),
            Some(entry) => Err(ScenarioError::new(
                "scenario::unused-key",
                "it has no effect together with the other settings here; remove it",
            )
            .at(self.context.file, &entry.place, self.key_path(&entry.key))),
        }
    }

    pub(crate) fn wrong(&self, key: &Setting, node: &Node, message: impl Into<String>) -> ScenarioError {
        ScenarioError::new("scenario::bad-value", message).at(self.context.file, &node.place, self.key_path(key.name))
    }

    pub(crate) fn wrong_kind(&self, key: &Setting, node: &Node) -> ScenarioError {
        let message = match (&node.item, key.domain) {
            (Item::Integer(_) | Item::Float(_), Domain::Time | Domain::Rate | Domain::Size | Domain::Queue) => {
                format!("`{}` has no unit", node.item.show())
            }
            _ => format!("it is {}", node.item.what()),
        };
        ScenarioError::new("scenario::wrong-kind", message)
            .at(self.context.file, &node.place, self.key_path(key.name))
            .expected(key.domain.expects())
    }
}

fn default_node(key: &Setting, text: &str) -> Node {
    let item = match key.domain {
        Domain::Count { .. } => text.parse().map(Item::Integer).ok(),
        Domain::Number { .. } => text.parse().map(Item::Float).ok(),
        Domain::Flag => text.parse().map(Item::Flag).ok(),
        _ => None,
    };
    Node { place: Place::Nowhere, item: item.unwrap_or_else(|| Item::Text(text.to_owned())) }
}

/// A type that a value can be read as.
pub(crate) trait FromNode: Sized {
    fn from_node(reader: &Reader<'_>, key: &Setting, node: &Node) -> Result<Self, ScenarioError>;
}

impl FromNode for u64 {
    fn from_node(reader: &Reader<'_>, key: &Setting, node: &Node) -> Result<u64, ScenarioError> {
        let Item::Integer(n) = node.item else { return Err(reader.wrong_kind(key, node)) };
        let (min, max) = if let Domain::Count { min, max } = key.domain { (min, max) } else { (0, u64::MAX) };
        match u64::try_from(n) {
            Ok(n) if (min..=max).contains(&n) => Ok(n),
            _ => Err(reader.wrong(key, node, format!("it is {n}")).expected(key.domain.expects())),
        }
    }
}

impl FromNode for usize {
    fn from_node(reader: &Reader<'_>, key: &Setting, node: &Node) -> Result<usize, ScenarioError> {
        let n = u64::from_node(reader, key, node)?;
        usize::try_from(n).ok().filter(|&n| n <= 10_000_000).ok_or_else(|| {
            reader.wrong(key, node, format!("{n} is more than this simulator can build; at most 10000000"))
        })
    }
}

impl FromNode for f64 {
    fn from_node(reader: &Reader<'_>, key: &Setting, node: &Node) -> Result<f64, ScenarioError> {
        let x = match node.item {
            Item::Integer(n) => n as f64,
            Item::Float(x) => x,
            _ => return Err(reader.wrong_kind(key, node)),
        };
        let (min, max) = if let Domain::Number { min, max } = key.domain { (min, max) } else { (f64::MIN, f64::MAX) };
        if (min..=max).contains(&x) && !(key.positive && x == 0.0) {
            Ok(x)
        } else {
            let expects =
                if key.positive { format!("{}, and not zero", key.domain.expects()) } else { key.domain.expects() };
            Err(reader.wrong(key, node, format!("it is {x}")).expected(expects))
        }
    }
}

impl FromNode for bool {
    fn from_node(reader: &Reader<'_>, key: &Setting, node: &Node) -> Result<bool, ScenarioError> {
        match node.item {
            Item::Flag(x) => Ok(x),
            _ => Err(reader.wrong_kind(key, node)),
        }
    }
}

/// Text with a unit.
fn quantity<T: std::str::FromStr<Err = ParseUnitError>>(
    reader: &Reader<'_>,
    key: &Setting,
    node: &Node,
    is_zero: fn(&T) -> bool,
) -> Result<T, ScenarioError> {
    let Item::Text(text) = &node.item else { return Err(reader.wrong_kind(key, node)) };
    let value: T = text.parse().map_err(|e: ParseUnitError| reader.wrong(key, node, e.to_string()))?;
    if key.positive && is_zero(&value) {
        return Err(reader.wrong(key, node, format!("`{text}` is zero; it must be more")));
    }
    Ok(value)
}

impl FromNode for Duration {
    fn from_node(reader: &Reader<'_>, key: &Setting, node: &Node) -> Result<Duration, ScenarioError> {
        quantity(reader, key, node, |d: &Duration| d.is_zero())
    }
}
impl FromNode for Bytes {
    fn from_node(reader: &Reader<'_>, key: &Setting, node: &Node) -> Result<Bytes, ScenarioError> {
        quantity(reader, key, node, |b: &Bytes| *b == Bytes::ZERO)
    }
}
impl FromNode for Rate {
    fn from_node(reader: &Reader<'_>, key: &Setting, node: &Node) -> Result<Rate, ScenarioError> {
        let positive = Setting { positive: true, ..*key };
        quantity(reader, &positive, node, |r: &Rate| r.bps() == 0)
    }
}
impl FromNode for QueueLimit {
    fn from_node(reader: &Reader<'_>, key: &Setting, node: &Node) -> Result<QueueLimit, ScenarioError> {
        quantity(reader, key, node, |q: &QueueLimit| {
            matches!(q, QueueLimit::Packets(0) | QueueLimit::Bytes(Bytes::ZERO))
        })
    }
}

impl FromNode for String {
    fn from_node(reader: &Reader<'_>, key: &Setting, node: &Node) -> Result<String, ScenarioError> {
        let Item::Text(text) = &node.item else { return Err(reader.wrong_kind(key, node)) };
        match key.domain {
            Domain::Word(words) if !words.contains(&text.as_str()) => Err(reader
                .wrong(key, node, format!("`{text}` is not a choice"))
                .expected(key.domain.expects())
                .nearest(nearest(text, words.iter().copied()))),
            _ => Ok(text.clone()),
        }
    }
}

impl FromNode for Vec<String> {
    fn from_node(reader: &Reader<'_>, key: &Setting, node: &Node) -> Result<Vec<String>, ScenarioError> {
        match &node.item {
            Item::Text(text) => Ok(vec![text.clone()]),
            Item::List(list) => list.iter().map(|n| String::from_node(reader, key, n)).collect(),
            _ => Err(reader.wrong_kind(key, node)),
        }
    }
}

impl FromNode for Draw {
    fn from_node(reader: &Reader<'_>, key: &Setting, node: &Node) -> Result<Draw, ScenarioError> {
        Draw::read(reader, key, node)
    }
}
