//! The document as a tree in which every value knows where it was written; overrides from the command line are grafted onto it.

use crate::error::{Place, ScenarioError};
use std::fmt::Write as _;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Characters of the longest text or key: no title, name or path (4,096 with Linux) needs more, and every page and line shows them.
const LONGEST: usize = 4_096;

/// A value and its place.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub place: Place,
    pub item: Item,
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Item {
    Text(String),
    Integer(i64),
    /// A whole number beyond 64 bits, as it was written.
    Huge(String),
    Float(f64),
    Flag(bool),
    List(Vec<Node>),
    Table(Table),
}

impl Item {
    /// What it is, with its article.
    pub fn what(&self) -> &'static str {
        match self {
            Item::Text(_) => "text",
            Item::Integer(_) | Item::Float(_) => "a bare number",
            Item::Huge(digits) if digits.starts_with('-') => "too small a number",
            Item::Huge(_) => "too large a number",
            Item::Flag(_) => "true or false",
            Item::List(_) => "a list",
            Item::Table(_) => "a table",
        }
    }
    /// As it would be written.
    pub fn show(&self) -> String {
        match self {
            Item::Text(text) | Item::Huge(text) => text.clone(),
            Item::Integer(n) => n.to_string(),
            Item::Float(x) => x.to_string(),
            Item::Flag(x) => x.to_string(),
            Item::List(_) | Item::Table(_) => self.what().to_owned(),
        }
    }
}

/// A table: entries in the order of the document.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Table {
    pub entries: Vec<Entry>,
}

/// A key, where it stands, and its value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub key: String,
    pub place: Place,
    pub node: Node,
}

impl Table {
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entries.iter().find(|e| e.key == key).map(|e| &e.node)
    }
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Node> {
        self.entries.iter_mut().find(|e| e.key == key).map(|e| &mut e.node)
    }
    pub fn remove(&mut self, key: &str) {
        self.entries.retain(|e| e.key != key);
    }
    pub fn insert(&mut self, key: &str, node: Node) {
        match self.get_mut(key) {
            Some(slot) => *slot = node,
            None => self.entries.push(Entry { key: key.to_owned(), place: node.place.clone(), node }),
        }
    }
}

/// Parses a document.
pub(crate) fn parse(text: &str, file: &str) -> Result<Table, ScenarioError> {
    let lines = Lines::new(text);
    let fail = |e: &toml::de::Error| {
        let place = e.span().map_or(Place::Nowhere, |s| lines.place(s.start));
        ScenarioError::new("scenario::syntax", format!("not valid TOML: {}", e.message().replace('\n', ", ")))
            .at(file, &place, "")
    };
    let document = DeTable::parse(text).map_err(|e| fail(&e))?;
    table(document.get_ref(), &lines, file)
}

fn table(source: &DeTable<'_>, lines: &Lines<'_>, file: &str) -> Result<Table, ScenarioError> {
    let mut spans = Vec::with_capacity(source.len());
    for (key, value) in source {
        let place = lines.place(key.span().start);
        is_short("key", key.get_ref()).map_err(|e| e.at(file, &place, ""))?;
        let entry = Entry { key: key.get_ref().to_string(), place, node: node(value, lines, file)? };
        spans.push((key.span().start, entry));
    }
    spans.sort_by_key(|(at, _)| *at);
    Ok(Table { entries: spans.into_iter().map(|(_, e)| e).collect() })
}

fn is_short(what: &str, text: &str) -> Result<(), ScenarioError> {
    let count = text.chars().count();
    if count <= LONGEST {
        return Ok(());
    }
    Err(ScenarioError::new("scenario::too-long", format!("this {what} has {count} characters; {LONGEST} are the most")))
}

fn node(source: &Spanned<DeValue<'_>>, lines: &Lines<'_>, file: &str) -> Result<Node, ScenarioError> {
    let place = lines.place(source.span().start);
    let bad = |what: &str| Err(ScenarioError::new("scenario::syntax", what.to_owned()).at(file, &place, ""));
    let item = match source.get_ref() {
        DeValue::String(text) => {
            is_short("text", text).map_err(|e| e.at(file, &place, ""))?;
            Item::Text(text.to_string())
        }
        DeValue::Integer(n) => match i64::from_str_radix(n.as_str(), n.radix()) {
            Ok(n) => Item::Integer(n),
            Err(_) => {
                is_short("number", n.as_str()).map_err(|e| e.at(file, &place, ""))?;
                Item::Huge(n.to_string())
            }
        },
        DeValue::Float(x) => match x.as_str().parse() {
            Ok(x) => Item::Float(x),
            Err(_) => return bad("this is not a number"),
        },
        DeValue::Boolean(x) => Item::Flag(*x),
        DeValue::Datetime(_) => return bad("dates mean nothing in a scenario; put text into quotes"),
        DeValue::Array(list) => Item::List(list.iter().map(|v| node(v, lines, file)).collect::<Result<_, _>>()?),
        DeValue::Table(t) => Item::Table(table(t, lines, file)?),
    };
    Ok(Node { place, item })
}

/// Turns byte offsets into lines and columns.
struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
    /// How many characters stand before each [`STRETCH`] of bytes: a line may be as long as the file, and have a hundred thousand values.
    before: Vec<u32>,
}

const STRETCH: usize = 1024;

impl Lines<'_> {
    fn new(text: &str) -> Lines<'_> {
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(i, _)| i + 1)).collect();
        let mut count = 0;
        let stretches = text.as_bytes().chunks(STRETCH).map(|bytes| {
            count += characters(bytes);
            count
        });
        let before = std::iter::once(0).chain(stretches).collect();
        Lines { text, starts, before }
    }
    fn place(&self, offset: usize) -> Place {
        let line = self.starts.partition_point(|&s| s <= offset).max(1);
        let column = self.characters_before(offset).saturating_sub(self.characters_before(self.starts[line - 1]));
        Place::Line { line: line as u32, column: column + 1 }
    }
    fn characters_before(&self, offset: usize) -> u32 {
        let offset = offset.min(self.text.len());
        let stretch = offset / STRETCH;
        self.before[stretch] + characters(&self.text.as_bytes()[stretch * STRETCH..offset])
    }
}

/// Characters that begin in these bytes of UTF-8.
fn characters(bytes: &[u8]) -> u32 {
    bytes.iter().filter(|&&byte| byte & 0xC0 != 0x80).count() as u32
}

/// A change on top of the file.
#[derive(Clone, Debug, PartialEq)]
pub enum Override {
    /// `--cc NAME`: another algorithm with its default parameters instead of the whole `[cc]` table.
    Cc(String),
    /// `--seed N`: this seed alone.
    Seed(u64),
    /// `--set KEY.PATH=VALUE`.
    Set {
        /// Dotted, with list positions counted from 0: `workload[1].bytes` or `workload.1.bytes`.
        path: String,
        /// As in a scenario file; text needs no quotes.
        value: String,
    },
}

impl Override {
    /// Reads the argument of `--set`.
    ///
    /// # Errors
    /// [`ScenarioError`] when there is no `=` or no key.
    pub fn set(argument: &str) -> Result<Override, ScenarioError> {
        match argument.split_once('=') {
            Some((path, value)) if !path.trim().is_empty() => {
                Ok(Override::Set { path: path.trim().to_owned(), value: value.trim().to_owned() })
            }
            _ => {
                Err(ScenarioError::new("scenario::override", "it must be KEY.PATH=VALUE, as in `topology.buffer=250p`")
                    .at("", &Place::CommandLine(format!("--set {argument}")), ""))
            }
        }
    }

    /// Writes it into the tree.
    pub(crate) fn apply(&self, root: &mut Table) -> Result<(), ScenarioError> {
        match self {
            Override::Cc(name) => {
                let place = Place::CommandLine(format!("--cc {name}"));
                let text = Node { place: place.clone(), item: Item::Text(name.clone()) };
                let mut table = Table::default();
                table.insert("name", text);
                root.insert("cc", Node { place, item: Item::Table(table) });
                Ok(())
            }
            Override::Seed(seed) => {
                let place = Place::CommandLine(format!("--seed {seed}"));
                let seed = i64::try_from(*seed).map_err(|_| {
                    ScenarioError::new("scenario::out-of-range", "a seed must be below 2^63").at("", &place, "run.seed")
                })?;
                let run = child_table(root, "run", &place, "run")?;
                run.remove("seeds");
                run.insert("seed", Node { place: place.clone(), item: Item::Integer(seed) });
                Ok(())
            }
            Override::Set { path, value } => {
                let place = Place::CommandLine(format!("--set {path}={value}"));
                set(root, path, value, &place)
            }
        }
    }
}

fn set(root: &mut Table, path: &str, value: &str, place: &Place) -> Result<(), ScenarioError> {
    let normal = path.replace('[', ".").replace(']', "");
    let steps: Vec<&str> = normal.split('.').map(str::trim).collect();
    let fail = |message: String| Err(ScenarioError::new("scenario::override", message).at("", place, path));
    if steps.iter().any(|s| s.is_empty()) {
        return fail("a part of the key is empty; write it like `topology.buffer`".to_owned());
    }
    let mut item = override_value(value, place);
    item.place = place.clone();
    let mut table = root;
    let mut shown = String::new();
    let mut steps = steps.into_iter().peekable();
    while let Some(step) = steps.next() {
        if steps.peek().is_none() {
            // A new key of a table; whether it is a valid one is decided where the table is read.
            table.remove(step);
            table.insert(step, item);
            return Ok(());
        }
        let _ = write!(shown, "{}{step}", if shown.is_empty() { "" } else { "." });
        if !table.entries.iter().any(|e| e.key == step) {
            table.insert(step, Node { place: place.clone(), item: Item::Table(Table::default()) });
        }
        let Some(node) = table.get_mut(step) else { return fail(format!("`{shown}` is not a table")) };
        table = match &mut node.item {
            Item::Table(t) => t,
            Item::List(list) => {
                let count = list.len();
                let position = match steps.peek().and_then(|s| s.parse::<usize>().ok()) {
                    Some(n) => {
                        steps.next();
                        n
                    }
                    None if count == 1 => 0,
                    None => return fail(format!("there are {count} of `{shown}`: say which, as in `{shown}[0]`")),
                };
                let Some(node) = list.get_mut(position) else {
                    return fail(format!("there is no `{shown}[{position}]`; there are {count}, counted from 0"));
                };
                if steps.peek().is_none() {
                    *node = item;
                    return Ok(());
                }
                match &mut node.item {
                    Item::Table(t) => t,
                    _ => return fail(format!("`{shown}[{position}]` is not a table")),
                }
            }
            _ => return fail(format!("`{shown}` is not a table")),
        };
    }
    Ok(())
}

/// A TOML value, or else text.
fn override_value(value: &str, place: &Place) -> Node {
    let parsed = parse(&format!("x = {value}"), "").ok();
    let node = parsed.filter(|t| t.entries.len() == 1).and_then(|t| t.entries.into_iter().next()).map(|e| e.node);
    let mut node = node.unwrap_or_else(|| Node { place: place.clone(), item: Item::Text(value.to_owned()) });
    relocate(&mut node, place);
    node
}

fn relocate(node: &mut Node, place: &Place) {
    node.place = place.clone();
    match &mut node.item {
        Item::List(list) => list.iter_mut().for_each(|n| relocate(n, place)),
        Item::Table(t) => t.entries.iter_mut().for_each(|e| {
            e.place = place.clone();
            relocate(&mut e.node, place);
        }),
        _ => {}
    }
}

fn child_table<'a>(root: &'a mut Table, key: &str, place: &Place, path: &str) -> Result<&'a mut Table, ScenarioError> {
    if root.get(key).is_none() {
        root.insert(key, Node { place: place.clone(), item: Item::Table(Table::default()) });
    }
    match root.get_mut(key).map(|n| &mut n.item) {
        Some(Item::Table(t)) => Ok(t),
        _ => Err(ScenarioError::new("scenario::override", format!("`{path}` is not a table")).at("", place, path)),
    }
}
