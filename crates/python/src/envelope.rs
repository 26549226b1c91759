//! Traces of a run, and frames, as their envelope ([`fanin_sim::envelope`]).
#![allow(unsafe_code)]

use crate::columns::{Table, u32s};
use crate::error::internal;
use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::{Array, Float64Array, RecordBatch, UInt32Array};
use fanin_sim::columns::milliseconds;
use fanin_sim::envelope::{Point, envelope, fitted};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::collections::HashMap;
use std::sync::Arc;

/// Which rows of a trace show each of its `lines` in at most so many rows; none: all do.
pub fn shown(times: &[u64], lines: &[u32], value: impl Fn(usize) -> f64, most: u64) -> Option<Vec<u32>> {
    let point = |row: usize| Point { line: lines[row], time: milliseconds(times[row]), value: value(row) };
    (times.len() as u64 > most).then(|| fitted(|| (0..times.len()).map(&point), most))
}

/// Lines of a trace: frames with the columns `time` and `value`, and others (UInt32) that tell the lines apart, in any mixture.
#[pyclass(frozen, module = "fanin._native")]
pub struct Lines {
    pieces: Vec<RecordBatch>,
    /// The line of each row; none: there is one line.
    line: Vec<u32>,
}

/// The columns of a piece that are read.
struct Piece<'a> {
    time: &'a Float64Array,
    value: Value<'a>,
}

/// A column of values.
enum Value<'a> {
    Real(&'a Float64Array),
    Count(&'a UInt32Array),
}

impl Value<'_> {
    /// NaN: none.
    fn at(&self, row: usize) -> f64 {
        match self {
            Value::Real(all) if all.is_valid(row) => all.value(row),
            Value::Count(all) if all.is_valid(row) => f64::from(all.value(row)),
            _ => f64::NAN,
        }
    }
}

fn column<'a, A: Array + 'static>(piece: &'a RecordBatch, name: &str) -> PyResult<&'a A> {
    let found = piece.column_by_name(name).and_then(|c| c.as_any().downcast_ref::<A>());
    found.ok_or_else(|| PyTypeError::new_err(format!("there is no column `{name}` of the right type")))
}

/// The line of each row, counted in the order in which they begin; none: no column tells lines apart.
fn numbered(pieces: &[RecordBatch]) -> PyResult<Vec<u32>> {
    let mut line = Vec::new();
    let mut known: HashMap<Vec<u32>, u32> = HashMap::new();
    let (mut last, mut here) = (Vec::new(), Vec::new());
    for piece in pieces {
        let schema = piece.schema();
        let names = schema.fields().iter().map(|f| f.name()).filter(|n| *n != "time" && *n != "value");
        let keys = names.map(|name| column::<UInt32Array>(piece, name)).collect::<PyResult<Vec<_>>>()?;
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        line.reserve_exact(piece.num_rows());
        for row in 0..piece.num_rows() {
            here.clear();
            here.extend(keys.iter().map(|key| if key.is_null(row) { u32::MAX } else { key.value(row) }));
            let number = match line.last() {
                Some(&number) if here == last => number,
                _ => {
                    last.clone_from(&here);
                    let next = known.len() as u32;
                    *known.entry(here.clone()).or_insert(next)
                }
            };
            line.push(number);
        }
    }
    Ok(line)
}

impl Lines {
    /// Reads the rows, as often as needed.
    fn rows<'a>(&'a self) -> PyResult<impl Fn() -> Box<dyn Iterator<Item = Point> + 'a> + 'a> {
        let pieces = self.pieces.iter().map(|piece| {
            let counts = column::<UInt32Array>(piece, "value").map(Value::Count);
            let value = counts.or_else(|_| column::<Float64Array>(piece, "value").map(Value::Real))?;
            Ok(Piece { time: column(piece, "time")?, value })
        });
        let pieces = Arc::new(pieces.collect::<PyResult<Vec<_>>>()?);
        Ok(move || {
            let mut number = 0;
            let pieces = Arc::clone(&pieces);
            let rows = (0..pieces.len()).flat_map(move |piece| {
                let pieces = Arc::clone(&pieces);
                (0..pieces[piece].time.len())
                    .map(move |row| (pieces[piece].time.value(row), pieces[piece].value.at(row)))
            });
            Box::new(rows.map(move |(time, value)| {
                let line = self.line.get(number).copied().unwrap_or(0);
                number += 1;
                Point { line, time, value }
            })) as Box<dyn Iterator<Item = Point>>
        })
    }
}

#[pymethods]
impl Lines {
    /// From a frame in pieces: one in one piece is not copied on the way.
    #[new]
    fn new(frames: Vec<Bound<'_, PyAny>>) -> PyResult<Lines> {
        let mut pieces = Vec::with_capacity(frames.len());
        for frame in frames {
            let capsule = frame.call_method0("__arrow_c_stream__")?.cast_into::<PyCapsule>()?;
            let stream = capsule.pointer_checked(Some(c"arrow_array_stream"))?;
            // SAFETY: by Arrow's PyCapsule interface a capsule of this name holds such a stream, which is moved out of it here.
            let reader = unsafe { RecordBatchStreamReader::from_raw(stream.as_ptr().cast::<FFI_ArrowArrayStream>()) };
            for piece in reader.map_err(internal)? {
                pieces.push(piece.map_err(internal)?);
            }
        }
        Ok(Lines { line: numbered(&pieces)?, pieces })
    }

    /// Numbers of the rows that show lines of so many points, as the column `row`; of points that lie between the two times of `span`, where these
    /// lines are a part of what is shown.
    #[pyo3(signature = (points, span=None))]
    fn envelope(&self, py: Python<'_>, points: u64, span: Option<(f64, f64)>) -> PyResult<Table> {
        let rows = self.rows()?;
        Table::new(vec![("row", u32s(py.detach(|| envelope(&rows, points, span))))])
    }

    /// Numbers of at most so many rows, as the column `row`: an envelope as fine as fits.
    fn fitted(&self, py: Python<'_>, rows: u64) -> PyResult<Table> {
        let all = self.rows()?;
        Table::new(vec![("row", u32s(py.detach(|| fitted(&all, rows))))])
    }
}
