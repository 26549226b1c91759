//! What a run leaves behind, as tables. Times stay whole picoseconds here; frames have them in milliseconds.

use crate::columns::{Table, f64s, optional_u64s, texts, u8s, u32s, u64s};
use crate::envelope;
use crate::simulate::Replayed;
use arrow_array::ArrayRef;
use fanin_sim::columns::{Codes, Values, milliseconds};
use fanin_sim::results::{EVENTS, Results, TABLES};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use serde_json::{Value, json};

/// The results of one simulation.
#[pyclass(frozen, module = "fanin._native")]
pub struct Run {
    results: Results,
    classes: Vec<String>,
}

impl Run {
    /// `classes` are the names that flows and messages refer to.
    pub fn new(results: Results, classes: Vec<String>) -> Run {
        Run { results, classes }
    }

    /// What the engine left.
    pub fn results(&self) -> &Results {
        &self.results
    }

    /// Which rows of a trace show it in at most so many; none: all.
    fn shown(&self, name: &str, most: u64) -> Option<Vec<u32>> {
        let traces = &self.results.traces;
        match name {
            "queue" => {
                let t = &traces.queue;
                envelope::shown(&t.time_ps, &t.link, |row| f64::from(t.packets[row]), most)
            }
            "window" => {
                let t = &traces.window;
                envelope::shown(&t.time_ps, &t.flow, |row| t.cwnd[row], most)
            }
            _ => None,
        }
    }

    fn array(&self, values: Values<'_>) -> ArrayRef {
        match values {
            Values::U64(values) => u64s(values),
            Values::OptionalU64(values) => optional_u64s(values),
            Values::U32(values) => u32s(values),
            Values::U8(values) => u8s(values),
            Values::F64(values) => f64s(values),
            Values::Text(values) => texts(values),
            Values::Shared(values) => texts(values),
            Values::Class(numbers) => {
                texts(numbers.iter().map(|&n| self.classes.get(usize::from(n)).map_or("", String::as_str)))
            }
        }
    }
}

#[pymethods]
impl Run {
    /// The seed it ran with.
    #[getter]
    fn seed(&self) -> u64 {
        self.results.seed
    }
    /// When it stopped.
    #[getter]
    fn end_ps(&self) -> u64 {
        self.results.end_ps
    }
    /// Every finite message was delivered.
    #[getter]
    fn complete(&self) -> bool {
        self.results.complete
    }
    /// Packets accepted by output ports: the engine's unit of work.
    #[getter]
    fn packet_hops(&self) -> u64 {
        self.results.packet_hops
    }

    /// The packet events of one flow between two times in ms, both included, with what tells equal ones apart.
    fn packets_of(&self, py: Python<'_>, flow: u32, from_ms: f64, to_ms: f64) -> PyResult<Table> {
        let all = &self.results.traces.packets;
        let within = from_ms..=to_ms;
        let mine = |&n: &usize| all.flow[n] == flow && within.contains(&milliseconds(all.time_ps[n]));
        let rows: Vec<usize> = py.detach(|| (0..all.flow.len()).filter(mine).collect());
        let rows = || rows.iter().copied();
        Table::new(vec![
            ("time_ms", f64s(rows().map(|n| milliseconds(all.time_ps[n])))),
            ("event", texts(rows().map(|n| EVENTS[usize::from(all.event[n])]))),
            ("seq", u64s(rows().map(|n| all.seq[n]))),
            ("payload", u32s(rows().map(|n| all.payload[n]))),
            ("port", u32s(rows().map(|n| all.link[n]))),
            ("flags", u32s(rows().map(|n| u32::from(all.flags[n])))),
        ])
    }

    /// A table by its name, or some of its columns; they are those of `results_schema_json`. Of `queue` and `window` at most so many rows: an
    /// envelope that keeps the peaks of each port or flow. Of `flows` those alone that carry responses of `replayed`, with their numbers and their
    /// connections'.
    #[pyo3(signature = (name, columns=None, most=None, replayed=None))]
    fn table(
        &self,
        py: Python<'_>,
        name: &str,
        columns: Option<Vec<String>>,
        most: Option<u64>,
        replayed: Option<&Replayed>,
    ) -> PyResult<Table> {
        let Some(table) = TABLES.iter().find(|t| t.name == name) else {
            return Err(PyKeyError::new_err(name.to_owned()));
        };
        let wanted = table.columns.iter().filter(|c| columns.as_ref().is_none_or(|w| w.iter().any(|n| n == c.name)));
        py.detach(|| {
            let carried = replayed.filter(|_| name == "flows").map(Replayed::carried);
            let carrying = carried.as_ref().map(|all| (0..).zip(all).filter_map(|(n, c)| c.map(|_| n)).collect());
            let rows: Option<Vec<u32>> = carrying.or_else(|| most.and_then(|most| self.shown(name, most)));
            let values = |read: fn(&Results) -> Values<'_>| match &rows {
                Some(rows) => read(&self.results).at(rows),
                None => read(&self.results),
            };
            let mut made: Vec<_> = wanted.map(|c| (c.name, self.array(values(c.read)))).collect();
            if let (Some(carried), Some(rows)) = (carried, rows) {
                made.push(("flow", u32s(rows)));
                made.push(("connection", u32s(carried.into_iter().flatten())));
            }
            Table::new(made)
        })
    }
}

/// The tables of results as JSON: for each its name, meaning, row number and columns (name, unit, type, meaning, words of its codes).
#[pyfunction]
pub fn results_schema_json() -> String {
    let tables: Vec<Value> = TABLES
        .iter()
        .map(|table| {
            let columns: Vec<Value> = table
                .columns
                .iter()
                .map(|column| {
                    let codes = match column.codes {
                        Codes::None => Value::Null,
                        Codes::Words(words) => json!(words),
                        Codes::Ports => json!("ports"),
                    };
                    json!({
                        "name": column.name,
                        "unit": column.unit,
                        "type": column.kind(),
                        "nullable": column.nullable(),
                        "doc": column.doc(),
                        "codes": codes,
                    })
                })
                .collect();
            json!({ "name": table.name, "doc": table.doc.trim(), "index": table.index, "columns": columns })
        })
        .collect();
    json!(tables).to_string()
}
