//! Sizes and times drawn one by one.

use crate::distribution::{Dimension, Distribution};
use crate::error::ScenarioError;
use crate::reader::{FromNode, Reader};
use crate::tree::{Item, Node};
use fanin_sim::rng::Stream;
use fanin_units::{Bytes, Domain, Duration, Setting};
use std::sync::Arc;

/// A random quantity: bytes, or picoseconds.
#[derive(Clone, Debug)]
pub(crate) enum Draw {
    Constant(f64),
    /// Uniform between two values.
    Uniform(f64, f64),
    /// Exponential with this mean.
    Exponential(f64),
    /// From a file.
    Empirical(Arc<Distribution>),
}

const UNIFORM: Setting = Setting::of("uniform", Domain::Texts, "least and greatest");
const SIZE_KEYS: &[Setting] = &[UNIFORM, Setting::size("exponential", "mean").positive()];
const TIME_KEYS: &[Setting] = &[UNIFORM, Setting::time("exponential", "mean").positive()];

impl Draw {
    pub fn read(reader: &Reader<'_>, key: &Setting, node: &Node) -> Result<Draw, ScenarioError> {
        let times = key.domain == Domain::Times;
        match &node.item {
            Item::Text(text) if text.trim_start().starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c)) => {
                one(reader, key, node, times).map(Draw::Constant)
            }
            Item::Text(name) => {
                let dimension = if times { Dimension::Time } else { Dimension::Size };
                let loaded = Distribution::load(name, reader.context.folder, dimension);
                let distribution = loaded.map_err(|e| {
                    // A problem inside the file is reported there; one with its name, here.
                    if e.file.is_empty() { e.at_node(reader, key, node) } else { e }
                })?;
                Ok(Draw::Empirical(Arc::new(distribution)))
            }
            Item::Table(_) => Draw::read_table(reader, key, node, times),
            _ => Err(reader.wrong_kind(key, node)),
        }
    }

    fn read_table(reader: &Reader<'_>, key: &Setting, node: &Node, times: bool) -> Result<Draw, ScenarioError> {
        let keys = if times { TIME_KEYS } else { SIZE_KEYS };
        let table = Reader::new(reader.context, reader.key_path(key.name), Some(node), &[keys])?;
        let draw = if let Some(bounds) = table.node("uniform") {
            let list = match &bounds.item {
                Item::List(list) if list.len() == 2 => list,
                _ => {
                    return Err(table
                        .refuse("uniform", "it must be the least and the greatest value, as in [\"2KB\", \"10KB\"]"));
                }
            };
            let (low, high) = (one(&table, &keys[0], &list[0], times)?, one(&table, &keys[0], &list[1], times)?);
            if high < low {
                return Err(table.refuse("uniform", "the second value is below the first"));
            }
            Draw::Uniform(low, high)
        } else if times && table.has("exponential") {
            Draw::Exponential(table.get::<Duration>("exponential")?.ps() as f64)
        } else if table.has("exponential") {
            Draw::Exponential(table.get::<Bytes>("exponential")?.get() as f64)
        } else {
            return Err(table.fail_here("scenario::missing-key", "the table is empty").expected(key.domain.expects()));
        };
        table.finish()?;
        Ok(draw)
    }

    /// The next value, from a number that is uniform on [0, 1).
    fn quantile(&self, u: f64) -> f64 {
        match self {
            Draw::Constant(x) => *x,
            Draw::Uniform(low, high) => low + u * (high - low),
            Draw::Exponential(mean) => -mean * (1.0 - u).ln(),
            Draw::Empirical(d) => d.quantile(u),
        }
    }

    /// The next size, at least one byte.
    pub fn bytes(&self, stream: &mut Stream) -> u64 {
        (self.quantile(stream.uniform()).round() as u64).max(1)
    }

    /// The next time.
    pub fn time(&self, stream: &mut Stream) -> Duration {
        Duration::from_ps(self.quantile(stream.uniform()).round() as u64)
    }

    /// Expected value of `f` of a draw.
    pub fn expect(&self, f: impl Fn(f64) -> f64) -> f64 {
        const POINTS: u32 = 4096;
        match self {
            Draw::Constant(x) => f(*x),
            Draw::Empirical(d) => d.expect(f),
            Draw::Uniform(..) | Draw::Exponential(_) => {
                (0..POINTS).map(|i| f(self.quantile((f64::from(i) + 0.5) / f64::from(POINTS)))).sum::<f64>()
                    / f64::from(POINTS)
            }
        }
    }
}

fn one(reader: &Reader<'_>, key: &Setting, node: &Node, times: bool) -> Result<f64, ScenarioError> {
    let key = Setting { domain: if times { Domain::Time } else { Domain::Size }, ..*key };
    if times {
        Duration::from_node(reader, &key, node).map(|d| d.ps() as f64)
    } else {
        Bytes::from_node(reader, &key, node).map(|b| b.get() as f64)
    }
}

impl ScenarioError {
    fn at_node(self, reader: &Reader<'_>, key: &Setting, node: &Node) -> ScenarioError {
        self.at(reader.context.file, &node.place, reader.key_path(key.name))
    }
}
