//! Traces of a run, and frames, as their envelope ([`fanin_sim::envelope`]).
#![allow(unsafe_code)]

use crate::columns::{Table, u32s};
use crate::error::internal;
use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::{Array, BooleanArray, Float64Array, RecordBatch};
use fanin_sim::columns::milliseconds;
use fanin_sim::envelope::{Point, envelope, fitted};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

/// Which rows of a trace show each of its `lines` in at most so many rows; none: all do.
pub fn shown(times: &[u64], lines: &[u32], value: impl Fn(usize) -> f64, most: u64) -> Option<Vec<u32>> {
    let point = |row: usize| Point { line: lines[row], time: milliseconds(times[row]), value: value(row) };
    (times.len() as u64 > most).then(|| fitted(|| (0..times.len()).map(&point), most))
}

/// Lines of a trace: a frame with the columns `begins`, `time` and `value`, a row after the other.
#[pyclass(frozen, module = "fanin._native")]
pub struct Lines(RecordBatch);

impl Lines {
    fn column<A: Array + 'static>(&self, name: &str) -> PyResult<&A> {
        let found = self.0.column_by_name(name).and_then(|c| c.as_any().downcast_ref::<A>());
        found.ok_or_else(|| PyTypeError::new_err(format!("there is no column `{name}` of the right type")))
    }

    /// Reads the rows, as often as needed.
    fn rows<'a>(&'a self) -> PyResult<impl Fn() -> Box<dyn Iterator<Item = Point> + 'a> + 'a> {
        let begins = self.column::<BooleanArray>("begins")?;
        let time = self.column::<Float64Array>("time")?;
        let value = self.column::<Float64Array>("value")?;
        let count = self.0.num_rows();
        Ok(move || {
            let mut line = 0;
            Box::new((0..count).map(move |row| {
                line += u32::from(row > 0 && begins.value(row));
                let value = if value.is_null(row) { f64::NAN } else { value.value(row) };
                Point { line, time: time.value(row), value }
            })) as Box<dyn Iterator<Item = Point>>
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
        Table::new(vec![("row", u32s(py.detach(|| envelope(&rows, points))))])
    }

    /// Numbers of at most so many rows, as the column `row`: an envelope as fine as fits.
    fn fitted(&self, py: Python<'_>, rows: u64) -> PyResult<Table> {
        let all = self.rows()?;
        Table::new(vec![("row", u32s(py.detach(|| fitted(&all, rows))))])
    }
}
