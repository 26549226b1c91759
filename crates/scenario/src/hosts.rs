//! `hosts`: what every host is made of and costs, as a preset's name, a file's, or a table.

use crate::error::{ScenarioError, nearest};
use crate::reader::Context;
use crate::transport::set_knobs;
use crate::tree::{Entry, Item, Node, Table, parse};
use crate::{scenario, tree};
use fanin_sim::hosts::{HOST_KNOBS, HOST_PRESETS, HostModel, host_preset};
use fanin_units::Domain;

/// Key of a table of hosts that names the preset on top of which the other keys are.
pub const PRESET: &str = "preset";

/// What is written under `hosts`; hosts that cost nothing, if nothing is.
pub(crate) fn read(context: Context<'_>, node: Option<&Node>) -> Result<HostModel, ScenarioError> {
    let Some(node) = node else { return Ok(HostModel::ideal()) };
    match &node.item {
        Item::Table(table) => of_table(context, "hosts", table),
        Item::Text(name) if host_preset(name).is_none() && name.ends_with(".toml") => {
            let path = context.folder.join(name);
            let file = path.display().to_string();
            let table = parse(&scenario::read_text(&path)?, &file)?;
            of_table(Context { file: &file, ..context }, "", &table)
        }
        Item::Text(name) => preset(context, "hosts", name, node),
        other => Err(ScenarioError::new("scenario::wrong-kind", format!("it is {}", other.what()))
            .at(context.file, &node.place, "hosts")
            .expected(Domain::Hosts.expects())),
    }
}

fn of_table(context: Context<'_>, path: &str, table: &Table) -> Result<HostModel, ScenarioError> {
    let key = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    let mut model = match table.get(PRESET) {
        None => HostModel::ideal(),
        Some(node @ Node { item: Item::Text(name), .. }) => preset(context, &key(PRESET), name, node)?,
        Some(Node { item, place }) => {
            return Err(ScenarioError::new("scenario::wrong-kind", format!("it is {}", item.what()))
                .at(context.file, place, key(PRESET))
                .expected("the name of a preset in quotes"));
        }
    };
    let knobs: Vec<&Entry> = table.entries.iter().filter(|e| e.key != PRESET).collect();
    for entry in &knobs {
        if !HOST_KNOBS.iter().any(|knob| knob.name == entry.key) {
            let near = nearest(&entry.key, HOST_KNOBS.iter().map(|k| k.name).chain([PRESET]));
            let message = format!("hosts have no `{}`; `fanin list hosts` shows all", entry.key);
            return Err(ScenarioError::new("scenario::unknown-key", message)
                .at(context.file, &entry.place, key(&entry.key))
                .nearest(near));
        }
    }
    set_knobs(context, path, knobs, HOST_KNOBS, &mut model)?;
    Ok(model)
}

fn preset(context: Context<'_>, path: &str, name: &str, node: &tree::Node) -> Result<HostModel, ScenarioError> {
    let names = || HOST_PRESETS.iter().map(|p| p.name);
    let found = host_preset(name).ok_or_else(|| {
        let message = format!(
            "no hosts are named `{name}`; there are {}, files such as \"measured.toml\", and tables",
            names().collect::<Vec<_>>().join(", ")
        );
        ScenarioError::new("scenario::unknown-profile", message)
            .at(context.file, &node.place, path)
            .nearest(nearest(name, names()))
    })?;
    Ok((found.model)())
}
