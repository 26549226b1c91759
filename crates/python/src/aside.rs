//! Columns of numbers that lie in files: their pages are in memory while there is room for them.
#![allow(unsafe_code)]

use crate::columns::Table;
use arrow_array::types::{Float64Type, UInt32Type, UInt64Type};
use arrow_array::{ArrayRef, ArrowPrimitiveType, PrimitiveArray};
use arrow_buffer::{Buffer, NullBuffer, ScalarBuffer};
use pyo3::prelude::*;
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;

/// A file in memory, for reading.
struct Mapping {
    begin: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the pages are mapped for reading alone, and no other process has the file.
unsafe impl Send for Mapping {}
// SAFETY: likewise.
unsafe impl Sync for Mapping {}
impl std::panic::RefUnwindSafe for Mapping {}

impl Mapping {
    fn new(file: i32, bytes: usize) -> std::io::Result<Mapping> {
        // SAFETY: a new place of the system's choice; of an address that it refuses nothing is made.
        let begin = unsafe { libc::mmap(null_mut(), bytes, libc::PROT_READ, libc::MAP_SHARED, file, 0) };
        if begin == libc::MAP_FAILED {
            return Err(std::io::Error::last_os_error());
        }
        let begin = NonNull::new(begin.cast()).ok_or_else(|| std::io::Error::other("there is nothing"))?;
        Ok(Mapping { begin, bytes })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: it was mapped so, and the last reader has gone.
        unsafe { libc::munmap(self.begin.as_ptr().cast(), self.bytes) };
    }
}

/// The column `values` of so many numbers of a kind (`d`: reals, `Q`: 64 bits, `I`: 32 bits) that an open file without a name begins with; those at
/// these places are null.
#[pyfunction]
pub fn mapped(file: i32, kind: char, count: usize, nulls: Vec<usize>) -> PyResult<Table> {
    let column = match kind {
        'd' => column::<Float64Type>(file, count, &nulls),
        'Q' => column::<UInt64Type>(file, count, &nulls),
        'I' => column::<UInt32Type>(file, count, &nulls),
        _ => Err(std::io::Error::other("no kind of numbers")),
    };
    Table::new(vec![("values", column?)])
}

fn column<T: ArrowPrimitiveType>(file: i32, count: usize, nulls: &[usize]) -> std::io::Result<ArrayRef> {
    let bytes = count * size_of::<T::Native>();
    let mapping = Mapping::new(file, bytes)?;
    let begin = mapping.begin;
    // SAFETY: the mapping lives as long as the buffer, is as long, and is not written.
    let buffer = unsafe { Buffer::from_custom_allocation(begin, bytes, Arc::new(mapping)) };
    let known = (!nulls.is_empty()).then(|| {
        let mut known = vec![true; count];
        nulls.iter().for_each(|&place| known[place] = false);
        NullBuffer::from(known)
    });
    let array = PrimitiveArray::<T>::try_new(ScalarBuffer::new(buffer, 0, count), known);
    array.map(|array| Arc::new(array) as ArrayRef).map_err(std::io::Error::other)
}
