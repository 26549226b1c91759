//! Traces as what a picture or a bound on memory leaves of them: of each slot of time the first, least, greatest and last row.
#![allow(unsafe_code)]

use crate::columns::{Table, u32s};
use crate::error::internal;
use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::{Array, BooleanArray, Float64Array, RecordBatch};
use fanin_sim::columns::milliseconds;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

/// Rows that stand line by line, each line in the order of time.
pub struct Rows<B, T, V> {
    /// How many.
    pub count: usize,
    /// Whether a line begins with this row.
    pub begins: B,
    /// When, ms.
    pub time: T,
    /// The value; NaN: none.
    pub value: V,
}

/// How many times an envelope may be made twice as fine to fill its rows.
const FINER: u32 = 3;

impl<B: Fn(usize) -> bool, T: Fn(usize) -> f64, V: Fn(usize) -> f64> Rows<B, T, V> {
    /// The first time and the last.
    fn span(&self) -> (f64, f64) {
        let times = || (0..self.count).map(&self.time);
        (times().fold(f64::INFINITY, f64::min), times().fold(f64::NEG_INFINITY, f64::max))
    }

    /// The slot of each row, where a line has `points` of them. As Polars divides by a number, by its reciprocal.
    fn slot(&self, points: u64) -> impl Fn(usize) -> f64 {
        let (low, high) = self.span();
        let width = (high - low) / points as f64;
        let per_slot = 1.0 / if width == 0.0 { 1.0 } else { width };
        move |row| (((self.time)(row) - low) * per_slot).floor()
    }

    /// How many slots of all lines have a row, where a line has so many and one for the end.
    pub fn filled(&self, points: u64) -> u64 {
        let slot = self.slot(points);
        let mut last = f64::NAN;
        (0..self.count)
            .filter(|&row| {
                let before = std::mem::replace(&mut last, slot(row));
                (self.begins)(row) || before != last
            })
            .count() as u64
    }

    /// Rows that show a line of `points` slots, in their order.
    pub fn envelope(&self, points: u64) -> Vec<u32> {
        let (slot, most) = (self.slot(points), points as f64 - 1.0);
        let slot = |row| slot(row).clamp(0.0, most);
        let mut shown = Vec::new();
        let mut first = 0;
        while first < self.count {
            let here = slot(first);
            let mut end = first + 1;
            while end < self.count && !(self.begins)(end) && slot(end) == here {
                end += 1;
            }
            let (mut least, mut greatest) = (None::<(f64, usize)>, None::<(f64, usize)>);
            for row in first..end {
                let value = (self.value)(row);
                if !value.is_nan() {
                    least = least.filter(|l| l.0 <= value).or(Some((value, row)));
                    greatest = greatest.filter(|g| g.0 >= value).or(Some((value, row)));
                }
            }
            let mut rows = [first, end - 1, least.map_or(first, |l| l.1), greatest.map_or(first, |g| g.1)];
            rows.sort_unstable();
            for row in rows {
                if shown.last() != Some(&(row as u32)) {
                    shown.push(row as u32);
                }
            }
            first = end;
        }
        shown
    }

    /// As fine an envelope as has at most so many rows; all of them if they fit. Slots of time without a change cost nothing.
    pub fn fitted(&self, rows: u64) -> Vec<u32> {
        if self.count as u64 <= rows {
            return (0..self.count as u32).collect();
        }
        let lines = (0..self.count).filter(|&row| (self.begins)(row)).count() as u64;
        let coarsest = (rows / (4 * lines)).max(1);
        let finer = (1..=FINER).rev().map(|doublings| coarsest << doublings);
        self.envelope(finer.into_iter().find(|&points| 4 * self.filled(points) <= rows).unwrap_or(coarsest))
    }
}

/// Which rows of a trace, in the order of time, show the line of each of `lines` in at most so many rows; none: all do.
pub fn shown(times: &[u64], lines: &[u32], value: impl Fn(usize) -> f64, most: u64) -> Option<Vec<u32>> {
    if times.len() as u64 <= most {
        return None;
    }
    let mut order: Vec<u32> = (0..times.len() as u32).collect();
    order.sort_by_key(|&row| lines[row as usize]);
    let at = |n: usize| order[n] as usize;
    let rows = Rows {
        count: order.len(),
        begins: |n| n == 0 || lines[at(n)] != lines[at(n - 1)],
        time: |n| milliseconds(times[at(n)]),
        value: |n| value(at(n)),
    };
    let mut shown: Vec<u32> = rows.fitted(most).into_iter().map(|n| order[n as usize]).collect();
    shown.sort_unstable();
    Some(shown)
}

/// Lines of a trace: a frame with the columns `begins`, `time` and `value`, a row after the other.
#[pyclass(frozen, module = "fanin._native")]
pub struct Lines(RecordBatch);

impl Lines {
    fn column<A: Array + 'static>(&self, name: &str) -> PyResult<&A> {
        let found = self.0.column_by_name(name).and_then(|c| c.as_any().downcast_ref::<A>());
        found.ok_or_else(|| PyTypeError::new_err(format!("there is no column `{name}` of the right type")))
    }

    #[expect(clippy::type_complexity, reason = "closures have no names")]
    fn rows(&self) -> PyResult<Rows<impl Fn(usize) -> bool, impl Fn(usize) -> f64, impl Fn(usize) -> f64>> {
        let begins = self.column::<BooleanArray>("begins")?;
        let time = self.column::<Float64Array>("time")?;
        let value = self.column::<Float64Array>("value")?;
        Ok(Rows {
            count: self.0.num_rows(),
            begins: |row| begins.value(row),
            time: |row| time.value(row),
            value: |row| if value.is_null(row) { f64::NAN } else { value.value(row) },
        })
    }
}

#[pymethods]
impl Lines {
    /// From a frame in one piece.
    #[new]
    fn new(frame: &Bound<'_, PyAny>) -> PyResult<Lines> {
        let capsule = frame.call_method0("__arrow_c_stream__")?.cast_into::<PyCapsule>()?;
        let stream = capsule.pointer_checked(Some(c"arrow_array_stream"))?;
        // SAFETY: by Arrow's PyCapsule interface a capsule of this name holds such a stream, which is moved out of it here.
        let reader = unsafe { RecordBatchStreamReader::from_raw(stream.as_ptr().cast::<FFI_ArrowArrayStream>()) };
        let mut batches = reader.map_err(internal)?.collect::<Result<Vec<_>, _>>().map_err(internal)?;
        match (batches.pop(), batches.is_empty()) {
            (Some(batch), true) => Ok(Lines(batch)),
            _ => Err(PyTypeError::new_err("the frame is not in one piece")),
        }
    }

    /// Numbers of the rows that show lines of so many points, as the column `row`.
    fn envelope(&self, py: Python<'_>, points: u64) -> PyResult<Table> {
        let rows = self.rows()?;
        Table::new(vec![("row", u32s(py.detach(|| rows.envelope(points))))])
    }

    /// Numbers of at most so many rows, as the column `row`: an envelope as fine as fits.
    fn fitted(&self, py: Python<'_>, rows: u64) -> PyResult<Table> {
        let lines = self.rows()?;
        Table::new(vec![("row", u32s(py.detach(|| lines.fitted(rows))))])
    }
}
