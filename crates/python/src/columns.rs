//! Columns for Python: results go over as Arrow arrays, through Arrow's C data interface, without a copy.

use crate::error::internal;
use arrow_array::ffi::to_ffi;
use arrow_array::{Array, ArrayRef, Float64Array, StringArray, StructArray, UInt8Array, UInt32Array, UInt64Array};
use arrow_schema::{Field, Fields};
use fanin_sim::columns::milliseconds;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::sync::Arc;

/// Named columns of equal length. Polars, PyArrow, DuckDB and pandas take one as it is (`polars.DataFrame(table)`).
#[pyclass(frozen, module = "fanin._native")]
pub struct Table {
    rows: StructArray,
}

impl Table {
    /// From columns.
    ///
    /// # Errors
    /// When the columns differ in length.
    pub fn new(columns: Vec<(&'static str, ArrayRef)>) -> PyResult<Table> {
        let fields: Fields =
            columns.iter().map(|(name, column)| Field::new(*name, column.data_type().clone(), true)).collect();
        let rows = columns.first().map_or(0, |(_, column)| column.len());
        let arrays = columns.into_iter().map(|(_, column)| column).collect();
        StructArray::try_new_with_length(fields, arrays, None, rows).map(|rows| Table { rows }).map_err(internal)
    }
}

#[pymethods]
impl Table {
    /// Arrow's PyCapsule interface.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        // A request for other types may be answered with the native ones: the consumer casts.
        drop(requested_schema);
        let (array, schema) = to_ffi(&self.rows.to_data()).map_err(internal)?;
        Ok((
            PyCapsule::new_with_value(py, schema, c"arrow_schema")?,
            PyCapsule::new_with_value(py, array, c"arrow_array")?,
        ))
    }

    fn __len__(&self) -> usize {
        self.rows.len()
    }

    /// The columns' names.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.rows.column_names().into_iter().map(str::to_owned).collect()
    }
}

/// A column of 64-bit counts.
pub fn u64s(values: impl IntoIterator<Item = u64>) -> ArrayRef {
    Arc::new(UInt64Array::from_iter_values(values))
}

/// A column of 64-bit counts, some unknown.
pub fn optional_u64s(values: impl IntoIterator<Item = Option<u64>>) -> ArrayRef {
    Arc::new(values.into_iter().collect::<UInt64Array>())
}

/// A column of 32-bit counts.
pub fn u32s(values: impl IntoIterator<Item = u32>) -> ArrayRef {
    Arc::new(UInt32Array::from_iter_values(values))
}

/// A column of 32-bit counts, some unknown.
pub fn optional_u32s(values: impl IntoIterator<Item = Option<u32>>) -> ArrayRef {
    Arc::new(values.into_iter().collect::<UInt32Array>())
}

/// A column of times in ms from picoseconds, some unknown.
pub fn all_milliseconds(times: impl IntoIterator<Item = Option<u64>>) -> ArrayRef {
    Arc::new(times.into_iter().map(|t| t.map(milliseconds)).collect::<Float64Array>())
}

/// A column of the ms between two times in picoseconds; null where one is unknown.
pub fn between(times: impl IntoIterator<Item = (Option<u64>, Option<u64>)>) -> ArrayRef {
    // Of milliseconds, as a reader of the two columns would subtract them.
    Arc::new(
        times.into_iter().map(|(from, to)| Some(milliseconds(to?) - milliseconds(from?))).collect::<Float64Array>(),
    )
}

/// A column of small codes.
pub fn u8s(values: impl IntoIterator<Item = u8>) -> ArrayRef {
    Arc::new(UInt8Array::from_iter_values(values))
}

/// A column of reals; what is not finite becomes null.
pub fn f64s(values: impl IntoIterator<Item = f64>) -> ArrayRef {
    Arc::new(values.into_iter().map(|v| v.is_finite().then_some(v)).collect::<Float64Array>())
}

/// A column of texts.
pub fn texts<S: AsRef<str>>(values: impl IntoIterator<Item = S>) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(values))
}
