//! Distributions from CSV: a comment that says how to go between rows, a header, then rising rows of value and probability.
//!
//! ```csv
//! # interpolation: linear
//! size_bytes,cdf
//! 1460,0
//! 14600,0.5
//! 146000,1
//! ```
//! `linear` is uniform between two rows, `step` takes exactly the listed values (the upper row), `loglinear` is uniform in the
//! logarithm. Two rows with the same value are an atom. The mean depends on it by up to a factor of two, so it must be said.

use crate::error::{Place, ScenarioError, nearest};
use std::path::Path;

/// A cumulative distribution in bytes or picoseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution {
    interpolation: Interpolation,
    /// Value and probability of that value or less.
    rows: Vec<(f64, f64)>,
}

/// How to go between rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interpolation {
    /// Uniform between neighbours.
    Linear,
    /// The upper neighbour.
    Step,
    /// Uniform in the logarithm between neighbours.
    LogLinear,
}

/// What is distributed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dimension {
    /// Bytes: column `size_bytes`.
    Size,
    /// Times: column `gap_ns`, `gap_us`, `gap_ms` or `gap_s`.
    Time,
}

macro_rules! shipped {
    ($($name:literal),* $(,)?) => {
        /// The distributions that come with fanin: name and text.
        pub static SHIPPED: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../../data/distributions/", $name, ".csv")))),*];
    };
}

shipped! {
    "websearch_pfabric", "websearch_opera", "datamining_pfabric", "datamining_opera", "fb_hadoop_interrack_opera", "imc10",
    "homa_w1", "homa_w2", "homa_w3", "homa_w4", "homa_w5", "trim_http_train_size", "trim_http_train_gap",
    "imc17_burst_length", "imc17_burst_gap",
}

impl Interpolation {
    fn named(name: &str) -> Result<Interpolation, String> {
        match name {
            "linear" => Ok(Interpolation::Linear),
            "step" => Ok(Interpolation::Step),
            "loglinear" => Ok(Interpolation::LogLinear),
            other => Err(format!("`{other}` is no interpolation: it must be linear, step or loglinear")),
        }
    }
}

/// What a value of a file with this header is multiplied with.
fn scale_of(header: &str, dimension: Dimension) -> Result<f64, String> {
    match (header.replace(' ', "").as_str(), dimension) {
        ("size_bytes,cdf", Dimension::Size) => Ok(1.0),
        ("gap_ns,cdf", Dimension::Time) => Ok(1e3),
        ("gap_us,cdf", Dimension::Time) => Ok(1e6),
        ("gap_ms,cdf", Dimension::Time) => Ok(1e9),
        ("gap_s,cdf", Dimension::Time) => Ok(1e12),
        (_, Dimension::Size) => {
            Err(format!("the header of a distribution of sizes must be `size_bytes,cdf`, not `{header}`"))
        }
        (_, Dimension::Time) => Err(format!(
            "the header of a distribution of times must be `gap_us,cdf` (or gap_ns, gap_ms, gap_s), not `{header}`"
        )),
    }
}

/// A value and the probability of at most it, after the row before.
fn row(
    line: &str,
    scale: f64,
    previous: Option<&(f64, f64)>,
    interpolation: Option<Interpolation>,
) -> Result<(f64, f64), String> {
    let mut fields = line.split(',').map(|f| f.trim().parse::<f64>());
    let (Some(Ok(value)), Some(Ok(cdf)), None) = (fields.next(), fields.next(), fields.next()) else {
        return Err(format!("`{line}` is not a value and a probability"));
    };
    let value = value * scale;
    if !value.is_finite() || value < 0.0 || !(0.0..=1.0).contains(&cdf) {
        return Err(format!("`{line}`: the value must not be negative and the probability must lie between 0 and 1"));
    }
    if previous.is_some_and(|&(v, p)| value < v || cdf < p) {
        return Err(format!("`{line}` goes back: values and probabilities must rise from row to row"));
    }
    if interpolation == Some(Interpolation::LogLinear) && value == 0.0 {
        return Err("a loglinear distribution cannot contain zero".to_owned());
    }
    if previous.is_none() && cdf != 0.0 && interpolation != Some(Interpolation::Step) {
        return Err(format!("the first probability is {cdf}: start with a row of probability 0"));
    }
    Ok((value, cdf))
}

impl Distribution {
    /// A shipped one by name, or a file by its path.
    ///
    /// # Errors
    /// [`ScenarioError`] without a file where `name` itself is wrong, with file and line where the file is.
    pub fn load(name: &str, folder: &Path, dimension: Dimension) -> Result<Distribution, ScenarioError> {
        if let Some((name, text)) = SHIPPED.iter().find(|(n, _)| *n == name) {
            return Distribution::parse(text, name, dimension);
        }
        if !name.contains(['/', '.', '\\']) {
            let names = || SHIPPED.iter().map(|(n, _)| *n);
            let near = nearest(name, names());
            let known =
                if near.is_none() { format!(": {}", names().collect::<Vec<_>>().join(", ")) } else { String::new() };
            let message = format!(
                "`{name}` is neither a number with a unit, a shipped distribution{known}, nor a path to a .csv file"
            );
            return Err(ScenarioError::new("scenario::unknown-distribution", message).nearest(near));
        }
        let path = folder.join(name);
        let text = fanin_capture::read_text(&path).map_err(|e| {
            let message = format!(
                "the distribution file `{}` cannot be read: {}",
                path.display(),
                crate::scenario::io_reason(&e)
            );
            ScenarioError::new("scenario::file", message)
        })?;
        Distribution::parse(&text, name, dimension)
    }

    /// Reads the text of a file called `file` in messages.
    ///
    /// # Errors
    /// [`ScenarioError`] with the line at fault.
    pub fn parse(text: &str, file: &str, dimension: Dimension) -> Result<Distribution, ScenarioError> {
        let fail = |(line, message): (usize, String)| {
            let place = Place::Line { line: line as u32 + 1, column: 1 };
            ScenarioError::new("scenario::distribution", message).at(file, &place, "")
        };
        let mut interpolation = None;
        let mut scale = None;
        let mut rows: Vec<(f64, f64)> = Vec::new();
        let mut last_line = 0;
        for (n, line) in text.lines().map(str::trim).enumerate().filter(|(_, line)| !line.is_empty()) {
            if let Some(comment) = line.strip_prefix('#') {
                if let Some(how) = comment.trim().strip_prefix("interpolation:") {
                    interpolation = Some(Interpolation::named(how.trim()).map_err(|why| fail((n, why)))?);
                }
                continue;
            }
            last_line = n;
            match scale {
                None => scale = Some(scale_of(line, dimension).map_err(|why| fail((n, why)))?),
                Some(scale) => {
                    rows.push(row(line, scale, rows.last(), interpolation).map_err(|why| fail((n, why)))?);
                }
            }
        }
        Distribution::of(interpolation, rows, last_line).map_err(fail)
    }

    /// Of whole rows; else the line at fault, counted from 0, and why.
    fn of(
        interpolation: Option<Interpolation>,
        rows: Vec<(f64, f64)>,
        last_line: usize,
    ) -> Result<Distribution, (usize, String)> {
        let Some(interpolation) = interpolation else {
            let why = "say how to go between rows: a first line `# interpolation: linear` (or step, loglinear)";
            return Err((0, why.to_owned()));
        };
        match rows.last() {
            Some((_, cdf)) if *cdf == 1.0 && rows.len() >= 2 => Ok(Distribution { interpolation, rows }),
            Some((_, cdf)) if *cdf != 1.0 => Err((last_line, format!("the last probability is {cdf}: it must be 1"))),
            _ => Err((last_line, "a distribution needs at least two rows".to_owned())),
        }
    }

    /// The value below which a share `u` of all draws lies.
    pub fn quantile(&self, u: f64) -> f64 {
        let upper = self.rows.partition_point(|&(_, cdf)| cdf <= u).min(self.rows.len() - 1);
        let (x1, f1) = self.rows[upper];
        if upper == 0 {
            return x1;
        }
        let (x0, f0) = self.rows[upper - 1];
        self.between(x0, x1, if f1 > f0 { (u - f0) / (f1 - f0) } else { 1.0 })
    }

    fn between(&self, x0: f64, x1: f64, share: f64) -> f64 {
        match self.interpolation {
            Interpolation::Step => x1,
            Interpolation::Linear => x0 + share * (x1 - x0),
            Interpolation::LogLinear => x0 * (x1 / x0).powf(share),
        }
    }

    /// Probability of a value of at most `x`.
    pub fn cdf(&self, x: f64) -> f64 {
        let above = self.rows.partition_point(|&(v, _)| v <= x);
        let Some(&(x0, f0)) = above.checked_sub(1).and_then(|i| self.rows.get(i)) else { return 0.0 };
        let Some(&(x1, f1)) = self.rows.get(above) else { return 1.0 };
        match self.interpolation {
            Interpolation::Step => f0,
            Interpolation::Linear => f0 + (f1 - f0) * (x - x0) / (x1 - x0),
            Interpolation::LogLinear => f0 + (f1 - f0) * (x / x0).ln() / (x1 / x0).ln(),
        }
    }

    /// Exact mean.
    pub fn mean(&self) -> f64 {
        let first = self.rows[0].0 * self.rows[0].1;
        first
            + self
                .rows
                .windows(2)
                .map(|w| {
                    let ((x0, f0), (x1, f1)) = (w[0], w[1]);
                    let mean = match self.interpolation {
                        Interpolation::Step => x1,
                        Interpolation::Linear => (x0 + x1) / 2.0,
                        Interpolation::LogLinear if x1 > x0 => (x1 - x0) / (x1 / x0).ln(),
                        Interpolation::LogLinear => x1,
                    };
                    (f1 - f0) * mean
                })
                .sum::<f64>()
    }

    /// Expected value of `f` of a draw, by 256 points per row.
    pub fn expect(&self, f: impl Fn(f64) -> f64) -> f64 {
        const POINTS: u32 = 256;
        let first = self.rows[0].1 * f(self.rows[0].0);
        first
            + self
                .rows
                .windows(2)
                .filter(|w| w[1].1 > w[0].1)
                .map(|w| {
                    let ((x0, f0), (x1, f1)) = (w[0], w[1]);
                    let share = |i: u32| (f64::from(i) + 0.5) / f64::from(POINTS);
                    let mean = (0..POINTS).map(|i| f(self.between(x0, x1, share(i)))).sum::<f64>() / f64::from(POINTS);
                    (f1 - f0) * mean
                })
                .sum::<f64>()
    }
}
