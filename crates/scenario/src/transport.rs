//! `[stack]` and `[cc]`: which TCP.

use crate::error::{ScenarioError, nearest};
use crate::reader::Context;
use crate::tree::{Entry, Item, Node, Table};
use fanin_cc::{Args, Profile, Setting, SettingError, Setup, Value, registry};
use fanin_sim::knobs::{KNOBS, Knob, PROFILES, profile};
use fanin_sim::spec::TransportSpec;
use fanin_sim::stack::Stack;
use fanin_units::{Bytes, Domain, Duration, Rate};

/// The stack a scenario has unless it says.
pub const DEFAULT_PROFILE: &str = "ns2";
/// The algorithm a scenario has unless it says.
pub const DEFAULT_CC: &str = "newreno";

/// Reads a `[stack]` table on top of `base`; a `profile` starts anew.
pub(crate) fn stack(
    context: Context<'_>,
    path: &str,
    node: Option<&Node>,
    base: &Stack,
) -> Result<Stack, ScenarioError> {
    let Some(node) = node else { return Ok(base.clone()) };
    let table = table_of(context, path, node)?;
    let mut stack = base.clone();
    if let Some(entry) = table.entries.iter().find(|e| e.key == "profile") {
        let name = text_of(context, path, entry, "the name of a profile in quotes")?;
        let names = || PROFILES.iter().map(|p| p.name);
        let found = profile(name).ok_or_else(|| {
            let message = format!("no profile is named `{name}`; there are {}", names().collect::<Vec<_>>().join(", "));
            at(context, path, entry, "scenario::unknown-profile", message).nearest(nearest(name, names()))
        })?;
        stack = (found.stack)();
    }
    for entry in table.entries.iter().filter(|e| e.key != "profile") {
        if let Some(now) = fanin_sim::knobs::renamed(&entry.key) {
            let message = format!("this knob is now called `{now}`; write that");
            return Err(ScenarioError::new("scenario::renamed-key", message).at(
                context.file,
                &entry.place,
                format!("{path}.{}", entry.key),
            ));
        }
        if fanin_sim::knobs::find(&entry.key).is_none() {
            let near = nearest(&entry.key, KNOBS.iter().map(|k| k.name).chain(["profile"]));
            let message = format!("unknown knob `{}`; `fanin list stack` shows all", entry.key);
            return Err(ScenarioError::new("scenario::unknown-key", message)
                .at(context.file, &entry.place, format!("{path}.{}", entry.key))
                .nearest(near));
        }
    }
    set_knobs(context, path, table.entries.iter().filter(|e| e.key != "profile"), KNOBS, &mut stack)?;
    possible(context, path, node, table, &stack)?;
    Ok(stack)
}

/// Refuses knobs that cannot be together.
fn possible(context: Context<'_>, path: &str, node: &Node, table: &Table, stack: &Stack) -> Result<(), ScenarioError> {
    for (low, low_value, high, high_value) in [
        ("min_rto", stack.min_rto, "max_rto", stack.max_rto),
        ("receiver_min_rto", stack.receiver_min_rto, "max_rto", stack.max_rto),
        ("initial_rto", stack.initial_rto, "max_rto", stack.max_rto),
    ] {
        if low_value > high_value {
            let entry = table.entries.iter().find(|e| e.key == low || e.key == high);
            let place = entry.map_or(&node.place, |e| &e.node.place);
            return Err(ScenarioError::new(
                "scenario::not-possible",
                format!("`{low}` ({low_value}) must not exceed `{high}` ({high_value})"),
            )
            .at(context.file, place, path));
        }
    }
    let wire = u64::from(stack.mss).saturating_add(stack.header.get()).saturating_add(stack.frame_overhead.get());
    if wire > MAX_WIRE {
        let entry = table.entries.iter().find(|e| e.key == "mss" || e.key == "header" || e.key == "frame_overhead");
        let place = entry.map_or(&node.place, |e| &e.node.place);
        let message = format!(
            "a full segment of `mss`, `header` and `frame_overhead` is {wire} bytes long; a packet has at most {MAX_WIRE}"
        );
        return Err(ScenarioError::new("scenario::not-possible", message).at(context.file, place, path));
    }
    Ok(())
}

/// Sets what entries name, of knobs that are known to be there.
pub(crate) fn set_knobs<'a, T>(
    context: Context<'_>,
    path: &str,
    entries: impl IntoIterator<Item = &'a Entry>,
    knobs: &[Knob<T>],
    all: &mut T,
) -> Result<(), ScenarioError> {
    for entry in entries {
        let Some(knob) = knobs.iter().find(|k| k.name == entry.key) else { continue };
        let text = match (&entry.node.item, knob.domain) {
            (Item::Text(text), Domain::Time | Domain::Size | Domain::Word(_)) => text.clone(),
            (Item::Integer(n), Domain::Count { .. } | Domain::Number { .. }) => n.to_string(),
            (Item::Float(x), Domain::Number { .. }) => x.to_string(),
            (Item::Flag(x), Domain::Flag) => x.to_string(),
            (other, kind) => {
                let message = format!("it is {}", other.what());
                return Err(at(context, path, entry, "scenario::wrong-kind", message).expected(kind.expects()));
            }
        };
        (knob.set)(all, &text).map_err(|why| {
            let shown =
                if matches!(knob.domain, Domain::Time | Domain::Size) { why } else { format!("it is {text}; {why}") };
            let words = if let Domain::Word(words) = knob.domain { words } else { &[] };
            at(context, path, entry, "scenario::bad-value", shown).nearest(nearest(&text, words.iter().copied()))
        })?;
    }
    Ok(())
}

/// The length field of IP has 16 bits.
const MAX_WIRE: u64 = 65_535;

/// Reads a `[cc]` table; without one, [`DEFAULT_CC`].
pub(crate) fn transport(
    context: Context<'_>,
    path: &str,
    node: Option<&Node>,
    stack: Stack,
) -> Result<TransportSpec, ScenarioError> {
    let empty = Table::default();
    let table = node.map(|n| table_of(context, path, n)).transpose()?.unwrap_or(&empty);
    let entry = table.entries.iter().find(|e| e.key == "name");
    let name = match entry {
        Some(entry) => text_of(context, path, entry, "the name of an algorithm in quotes")?,
        None => match table.entries.first() {
            None => DEFAULT_CC,
            Some(first) => {
                let near = nearest(&first.key, ["name"]);
                return Err(at(context, path, first, "scenario::missing-key", "`name` must be set: which algorithm")
                    .expected("a table such as { name = \"dctcp\" }")
                    .nearest(near));
            }
        },
    };
    let here = |code: &'static str, message: String| match entry {
        Some(entry) => at(context, path, entry, code, message),
        None => ScenarioError::new(code, message).at(context.file, &crate::error::Place::Nowhere, path),
    };
    let cc = registry::resolve(name).map_err(|e| here("scenario::unknown-cc", e.to_string()))?;
    let declared: Vec<(&str, &str, &[Setting])> = cc.parts().iter().map(|a| ("cc", a.name, a.params)).collect();
    // The parameters of code that may not be looked into cannot be checked, and nothing runs.
    let args = match cc.takes_any_parameter() {
        true => Args::default(),
        false => params(context, path, table, &declared, stack.cc_profile)?,
    };
    let setup = Setup {
        mss: stack.mss,
        wire: stack.wire(stack.mss),
        initial_window: stack.initial_window,
        initial_ssthresh: stack.initial_ssthresh,
        counting: stack.counting,
        hz: stack.hz,
        profile: stack.cc_profile,
        path: Some(fanin_cc::PathKnowledge { rate: Rate::gbps(1), base_rtt: Duration::us(200), buffer_packets: 100.0 }),
    };
    cc.build(&setup, &args).map_err(|e| here("scenario::bad-value", e.to_string()))?;
    cc.build_receiver(&setup, &args).map_err(|e| here("scenario::bad-value", e.to_string()))?;
    Ok(TransportSpec { cc, args, stack })
}

/// Reads declared parameters beside a `name`; `declared` lists (kind of thing, its name, its parameters).
pub(crate) fn params(
    context: Context<'_>,
    path: &str,
    table: &Table,
    declared: &[(&str, &str, &'static [Setting])],
    profile: Profile,
) -> Result<Args, ScenarioError> {
    let mut args = Args::default();
    for entry in table.entries.iter().filter(|e| e.key != "name") {
        let known = || declared.iter().flat_map(|(_, _, params)| params.iter());
        let Some(param) = known().find(|p| p.name == entry.key) else {
            let names: Vec<&str> = known().map(|p| p.name).collect();
            let owner: Vec<&str> = declared.iter().map(|(_, name, _)| *name).collect();
            let near = nearest(&entry.key, names.iter().copied());
            let has = if names.is_empty() { "it has none".to_owned() } else { format!("it has {}", names.join(", ")) };
            return Err(ScenarioError::new(
                "scenario::unknown-key",
                format!("`{}` has no such parameter; {has}", owner.join("+")),
            )
            .at(context.file, &entry.place, format!("{path}.{}", entry.key))
            .nearest(near));
        };
        let value = param_value(context, path, entry, param)?;
        let mut alone = Args::default();
        alone.set(param.name, value.clone());
        if let Err(SettingError::BadValue { value, expected, .. }) = alone.value(param, profile) {
            return Err(at(context, path, entry, "scenario::bad-value", format!("it is {value}")).expected(expected));
        }
        // What is written and what is the default without it are the same scenario, with the same hash.
        if value != param.default_under(profile) {
            args.set(param.name, value);
        }
    }
    Ok(args)
}

fn param_value(context: Context<'_>, path: &str, entry: &Entry, param: &Setting) -> Result<Value, ScenarioError> {
    let bad = |message: String| Err(at(context, path, entry, "scenario::bad-value", message));
    match (&entry.node.item, param.quantity()) {
        (Item::Flag(x), _) => Ok(Value::Flag(*x)),
        (Item::Text(text), Some(Domain::Time)) => match text.parse::<Duration>() {
            Ok(d) => Ok(Value::Number(d.as_secs())),
            Err(e) => bad(e.to_string()),
        },
        (Item::Text(text), Some(Domain::Size)) => match text.parse::<Bytes>() {
            Ok(b) => Ok(Value::Number(b.get() as f64)),
            Err(e) => bad(e.to_string()),
        },
        (Item::Text(text), Some(_)) => match text.parse::<Rate>() {
            Ok(r) => Ok(Value::Number(r.bps() as f64)),
            Err(e) => bad(e.to_string()),
        },
        (Item::Integer(_) | Item::Float(_), Some(kind)) => {
            Err(at(context, path, entry, "scenario::wrong-kind", format!("`{}` has no unit", entry.node.item.show()))
                .expected(kind.expects()))
        }
        (Item::Integer(n), None) => Ok(Value::Number(*n as f64)),
        (Item::Float(x), None) => Ok(Value::Number(*x)),
        (Item::Text(word), None) => Ok(Value::Word(word.clone())),
        (other @ Item::Huge(_), _) => {
            Err(at(context, path, entry, "scenario::bad-value", format!("it is {}", other.what()))
                .expected(param.domain.expects()))
        }
        (other @ (Item::List(_) | Item::Table(_)), _) => bad(format!("it is {}", other.what())),
    }
}

fn at(
    context: Context<'_>,
    path: &str,
    entry: &Entry,
    code: &'static str,
    message: impl Into<String>,
) -> ScenarioError {
    // A file of its own has its keys at the top.
    let key = if path.is_empty() { entry.key.clone() } else { format!("{path}.{}", entry.key) };
    ScenarioError::new(code, message).at(context.file, &entry.node.place, key)
}

fn text_of<'a>(context: Context<'_>, path: &str, entry: &'a Entry, expected: &str) -> Result<&'a str, ScenarioError> {
    match &entry.node.item {
        Item::Text(text) => Ok(text),
        other => {
            Err(at(context, path, entry, "scenario::wrong-kind", format!("it is {}", other.what())).expected(expected))
        }
    }
}

fn table_of<'a>(context: Context<'_>, path: &str, node: &'a Node) -> Result<&'a Table, ScenarioError> {
    match &node.item {
        Item::Table(table) => Ok(table),
        other => Err(ScenarioError::new("scenario::wrong-kind", format!("it is {}, not a table", other.what())).at(
            context.file,
            &node.place,
            path,
        )),
    }
}
