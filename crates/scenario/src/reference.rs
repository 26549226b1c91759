//! The reference page of scenario files, made from the same tables that read them.

use crate::distribution::SHIPPED;
use crate::{measure, rack, scenario, topology, transport, workload};
use fanin_sim::hosts::{HOST_KNOBS, HOST_PRESETS};
use fanin_sim::knobs::{KNOBS, PROFILES};
use fanin_sim::queue::DISCIPLINES;
use fanin_units::{Domain, Setting};
use std::fmt::Write as _;

const HEAD: &str = "\
# Scenario files

<!-- Made by `FANIN_BLESS=1 cargo test -p fanin-scenario --test generated`; edit the tables in crates/scenario instead. -->

A scenario is a TOML file. Only a workload must be there; everything else has a default.

```toml
[topology]
kind = \"star\"
senders = 40
mark = \"20p\"

[stack]
profile = \"linux\"

[cc]
name = \"dctcp\"

[[workload]]
kind = \"incast\"
bytes = \"64KB\"
rounds = 10

[run]
duration = \"5s\"
seeds = 10
```

Quantities are text with a unit: times `\"50us\"`, rates `\"10Gbps\"`, sizes `\"256KB\"` (1000 B; `KiB` is 1024 B), queues `\"100p\"` (packets) or
`\"350KB\"`. A key that is unknown, or that has no effect beside the others, is an error with its line and the nearest valid key.

On the command line, `--cc NAME` stands for a `[cc]` table with that name alone, `--seed N` for one seed, and `--set KEY.PATH=VALUE` for any
key: `--set topology.buffer=250p`, `--set 'workload[1].bytes=1MB'` (lists are counted from 0).

For completion in editors, point them to `schema/scenario.schema.json`; with Taplo, by a first line `#:schema PATH`.

";

/// `docs/reference/scenario.md`.
pub fn page() -> String {
    let mut page = Page { text: HEAD.to_owned(), said: Vec::new() };
    page.section("The file", "", scenario::ROOT);
    page.topologies();
    stack(&mut page.text);
    hosts(&mut page.text);
    page.text.push_str("\n## `[cc]`\n\n");
    let _ = write!(
        page.text,
        "`name` is a registered algorithm (`{}` unless set), alone or composed as in `gss+dctcp`; its parameters stand beside it. \
         `fanin list cc` shows both. Parameters in seconds, bytes or bits per second are written with a unit.\n\n",
        transport::DEFAULT_CC
    );
    page.workloads();
    page.section("`[run]`", "", scenario::RUN);
    page.section("`[measure]`", "Totals per port, flow and message are always there.\n\n", measure::KEYS);
    distributions(&mut page.text);
    page.racks();
    format!("{}\n", page.text.trim_end())
}

/// The page as far as it is written.
struct Page {
    text: String,
    /// Keys that a table above describes, and where.
    said: Vec<(&'static Setting, &'static str)>,
}

impl Page {
    fn topologies(&mut self) {
        self.text.push_str("## `[topology]`\n\n`kind` is `star` unless set.\n\n### All kinds\n\n");
        self.table("[topology]", topology::COMMON);
        for t in topology::TOPOLOGIES {
            let (title, source) = (capital(t.title), source(t.source));
            let _ = write!(self.text, "### `kind = \"{}\"`\n\n{title}. {source}Names: {}.\n\n", t.name, t.names);
            self.table(t.name, t.keys);
            for key in t.keys {
                if let Domain::Tables(keys) = key.domain {
                    let _ = write!(self.text, "Each `[[topology.{}]]`:\n\n", key.name);
                    self.table(key.name, keys);
                }
            }
        }
        let heads = "| name | what | parameters |\n|---|---|---|";
        let _ = writeln!(
            self.text,
            "Queue disciplines, for `[topology.queue]` with `name` and these parameters beside it:\n\n{heads}"
        );
        for d in DISCIPLINES {
            let params: Vec<String> = d.params.iter().map(|p| format!("`{}`", p.name)).collect();
            let _ = writeln!(self.text, "| `{}` | {} | {} |", d.name, cell(d.title), params.join(", "));
        }
    }

    fn workloads(&mut self) {
        self.text.push_str("## `[[workload]]`\n\nAny number of them, each of some `kind`.\n\n### All kinds\n\n");
        self.table("[[workload]]", workload::COMMON);
        self.text.push_str("### All kinds over TCP\n\n");
        self.table("[[workload]]", workload::TCP);
        for w in workload::WORKLOADS {
            let (title, source) = (capital(w.title), source(w.source));
            let _ = write!(self.text, "### `kind = \"{}\"`\n\n{title}. {}\n\n", w.name, source.trim_end());
            self.table(w.name, w.keys);
        }
        self.text.push_str("Requests are a class of their own, `request`, so that completion times of answers are not mixed with them.\n\n");
    }

    fn racks(&mut self) {
        let intro = format!(
            "`fanin compare CAPTURE --rack rack.toml` replays a capture on one switch. Hosts run the `{}` profile with `nagle = \"off\"` (servers set TCP_NODELAY) unless `[stack]` says otherwise.\n\n",
            rack::RACK_PROFILE
        );
        self.section("Rack files", &intro, rack::ROOT);
        self.text.push_str("### `[rack]`\n\n");
        self.table("[rack]", rack::RACK);
        self.text.push_str("### `[replay]`\n\n");
        self.table("[replay]", rack::REPLAY);
    }

    fn section(&mut self, title: &str, intro: &str, keys: &'static [Setting]) {
        let _ = write!(self.text, "## {title}\n\n{intro}");
        self.table("", keys);
    }

    /// A row for each key of `place`. The four keys of a group of links are one row, and what stands above is named, not said again.
    fn table(&mut self, place: &'static str, keys: &'static [Setting]) {
        if keys.is_empty() {
            return;
        }
        self.text.push_str("| key | value | default | |\n|---|---|---|---|\n");
        let mut rest = keys;
        while let Some((key, after)) = rest.split_first() {
            if let Some((row, after)) = links(rest) {
                self.text.push_str(&row);
                rest = after;
                continue;
            }
            let said = self.said.iter().find(|(other, _)| other.name == key.name && other.help == key.help);
            let help = match said {
                Some((_, at)) => format!("as in `{at}`"),
                None => cell(key.help),
            };
            if said.is_none() && !place.is_empty() {
                self.said.push((key, place));
            }
            let _ = writeln!(self.text, "| `{}` | {} | {} | {help} |", key.name, value(&key.domain), default(key));
            rest = after;
        }
        self.text.push('\n');
    }
}

/// The row of the four keys that `link_keys!` declares, if they come next, and the keys after them.
fn links(keys: &'static [Setting]) -> Option<(String, &'static [Setting])> {
    const OF_ALL: [&str; 4] = ["rate", "delay", "buffer", "mark"];
    let (four, after) = keys.split_at_checked(4)?;
    let prefix = four[0].name.strip_suffix("rate").filter(|prefix| !prefix.is_empty())?;
    let what = four[0].help.strip_prefix("rate of ")?.strip_suffix("; as `rate` unless set")?;
    if !four.iter().zip(OF_ALL).all(|(key, name)| key.name.strip_prefix(prefix) == Some(name)) {
        return None;
    }
    let names: Vec<String> = four.iter().map(|key| format!("`{}`", key.name)).collect();
    let row = format!("| {} | as without `{prefix}` | as without `{prefix}` | {what} |\n", names.join(", "));
    Some((row, after))
}

/// Profiles and knobs.
fn stack(page: &mut String) {
    let _ = write!(
        page,
        "\n## `[stack]`\n\n`profile` is a named set of knobs (`{}` unless set), and each knob can be set on its own.\n\n",
        transport::DEFAULT_PROFILE
    );
    for p in PROFILES {
        let _ = writeln!(page, "- `{}`: {}", p.name, p.title);
    }
    let names: Vec<String> = PROFILES.iter().map(|p| format!("`{}`", p.name)).collect();
    let _ =
        write!(page, "\n| knob | {} | what it does |\n|---|{}---|\n", names.join(" | "), "---|".repeat(names.len()));
    for knob in KNOBS {
        let values: Vec<String> = PROFILES.iter().map(|p| (knob.get)(&(p.stack)())).collect();
        let _ = writeln!(page, "| `{}` | {} | {} |", knob.name, values.join(" | "), cell(knob.help));
    }
}

/// What hosts are made of.
fn hosts(page: &mut String) {
    page.push_str(
        "\n## `hosts`\n\n`hosts = \"25g\"` names a preset, `hosts = \"measured.toml\"` a file with the keys below, and `[hosts]` is a table of them on top of its `preset` (`ideal` unless set). \
         Every host of the run is as it says.\n\n",
    );
    for p in HOST_PRESETS {
        let by = if p.source.is_empty() { String::new() } else { format!(" ({})", p.source) };
        let _ = writeln!(page, "- `{}`: {}{by}", p.name, p.title);
    }
    let names: Vec<String> = HOST_PRESETS.iter().map(|p| format!("`{}`", p.name)).collect();
    let _ = write!(page, "\n| key | {} | what it is |\n|---|{}---|\n", names.join(" | "), "---|".repeat(names.len()));
    for knob in HOST_KNOBS {
        let values: Vec<String> = HOST_PRESETS.iter().map(|p| (knob.get)(&(p.model)())).collect();
        let _ = writeln!(page, "| `{}` | {} | {} |", knob.name, values.join(" | "), cell(knob.help));
    }
}

fn distributions(page: &mut String) {
    page.push_str(
        "## Distributions\n\nWhere sizes or times are drawn, a value is a constant (`\"8KB\"`), `{ uniform = [\"2KB\", \"10KB\"] }`, \
         `{ exponential = \"1ms\" }`, or a distribution by name or by the path of a CSV file:\n\n\
         ```csv\n# interpolation: linear\nsize_bytes,cdf\n1460,0\n14600,0.5\n146000,1\n```\n\n\
         The first line says how to go between rows: `linear` is uniform, `step` takes exactly the listed values, `loglinear` is uniform in the \
         logarithm. Columns are `size_bytes`, or `gap_ns`, `gap_us`, `gap_ms`, `gap_s`. Shipped (see `data/distributions/README.md` for sources): ",
    );
    let names: Vec<String> = SHIPPED.iter().map(|(name, _)| format!("`{name}`")).collect();
    let _ = write!(page, "{}.\n\n", names.join(", "));
}

fn default(key: &Setting) -> String {
    match (key.default_text(), key.required) {
        (Some(text), _) => format!("`{text}`"),
        (None, true) => "must be set".to_owned(),
        (None, false) => String::new(),
    }
}

fn value(kind: &Domain) -> String {
    match kind {
        Domain::Count { min, max: u64::MAX } => format!("integer from {min}"),
        Domain::Count { min, max } => format!("{min} to {max}"),
        Domain::Number { min, max } if *max == f64::INFINITY => format!("number from {min}"),
        Domain::Number { min, max } => format!("number, {min} to {max}"),
        Domain::Word(words) => words.iter().map(|w| format!("`{w}`")).collect::<Vec<_>>().join(", "),
        Domain::Time => "time".to_owned(),
        Domain::Rate => "rate".to_owned(),
        Domain::Size => "size".to_owned(),
        Domain::Queue => "queue length".to_owned(),
        Domain::Flag => "`true`, `false`".to_owned(),
        Domain::Text => "text".to_owned(),
        Domain::Texts => "text or a list".to_owned(),
        Domain::Seeds => "count or a list".to_owned(),
        Domain::Sizes => "size, or drawn".to_owned(),
        Domain::Times => "time, or drawn".to_owned(),
        Domain::Hosts => "name or table".to_owned(),
        Domain::Tables(_) | Domain::Groups | Domain::Cc | Domain::Stack | Domain::Discipline => "table".to_owned(),
    }
}

fn source(source: &str) -> String {
    if source.is_empty() { String::new() } else { format!("Source: {source}. ") }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// A table's cell may not contain its separator.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
