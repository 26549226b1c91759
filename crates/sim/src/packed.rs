//! Rows kept as columns, each in as few bytes as its values take. A million connections have two million flows, most of whose counts are zero or small: a
//! row of [`FlowStats`](crate::results::FlowStats) takes 280 bytes as it is, and some 60 here.

use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::Arc;

/// The values of one field of many rows.
pub trait Packed: Clone + Default {
    /// Type of the field.
    type Value;
    /// With room for so many rows.
    fn with_capacity(rows: usize) -> Self;
    /// Adds the value of the next row.
    fn push(&mut self, value: Self::Value);
    /// The value of a row.
    fn get(&self, row: usize) -> Self::Value;
    /// The last row becomes the first.
    fn reverse(&mut self);
    /// What the rows take, in bytes, beside what is there once.
    fn bytes(&self) -> usize;
}

/// A type of field that has a [`Packed`] form.
pub trait Pack: Sized {
    /// That form.
    type Column: Packed<Value = Self>;
}

/// Whole numbers in one, two, four or eight bytes each, as the greatest needs.
#[derive(Clone)]
pub enum Numbers {
    /// One byte each.
    One(Vec<u8>),
    /// Two.
    Two(Vec<u16>),
    /// Four.
    Four(Vec<u32>),
    /// Eight.
    Eight(Vec<u64>),
}

/// The same numbers in wider fields, with room for as many.
fn wider<T, W: From<T>>(narrow: &mut Vec<T>) -> Vec<W> {
    let narrow = std::mem::take(narrow);
    let mut wide = Vec::with_capacity(narrow.capacity());
    wide.extend(narrow.into_iter().map(W::from));
    wide
}

impl Numbers {
    /// The greatest number that fits.
    fn most(&self) -> u64 {
        match self {
            Numbers::One(_) => u8::MAX.into(),
            Numbers::Two(_) => u16::MAX.into(),
            Numbers::Four(_) => u32::MAX.into(),
            Numbers::Eight(_) => u64::MAX,
        }
    }

    fn widen(&mut self) {
        *self = match self {
            Numbers::One(all) => Numbers::Two(wider(all)),
            Numbers::Two(all) => Numbers::Four(wider(all)),
            Numbers::Four(all) => Numbers::Eight(wider(all)),
            Numbers::Eight(all) => Numbers::Eight(std::mem::take(all)),
        };
    }
}

impl Default for Numbers {
    fn default() -> Numbers {
        Numbers::One(Vec::new())
    }
}

impl Packed for Numbers {
    type Value = u64;

    fn with_capacity(rows: usize) -> Numbers {
        Numbers::One(Vec::with_capacity(rows))
    }

    fn push(&mut self, value: u64) {
        while value > self.most() {
            self.widen();
        }
        match self {
            Numbers::One(all) => all.push(value as u8),
            Numbers::Two(all) => all.push(value as u16),
            Numbers::Four(all) => all.push(value as u32),
            Numbers::Eight(all) => all.push(value),
        }
    }

    fn get(&self, row: usize) -> u64 {
        match self {
            Numbers::One(all) => all[row].into(),
            Numbers::Two(all) => all[row].into(),
            Numbers::Four(all) => all[row].into(),
            Numbers::Eight(all) => all[row],
        }
    }

    fn reverse(&mut self) {
        match self {
            Numbers::One(all) => all.reverse(),
            Numbers::Two(all) => all.reverse(),
            Numbers::Four(all) => all.reverse(),
            Numbers::Eight(all) => all.reverse(),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Numbers::One(all) => all.len(),
            Numbers::Two(all) => 2 * all.len(),
            Numbers::Four(all) => 4 * all.len(),
            Numbers::Eight(all) => 8 * all.len(),
        }
    }
}

/// A value that is kept as a whole number.
pub trait Coded: Sized {
    /// The number.
    fn code(self) -> u64;
    /// The value of a number.
    fn of(code: u64) -> Self;
}

/// Counts and times. The greatest number stands for "none" in some fields and is kept as the least, so that it does not widen its column.
impl Coded for u64 {
    fn code(self) -> u64 {
        self.wrapping_add(1)
    }
    fn of(code: u64) -> u64 {
        code.wrapping_sub(1)
    }
}

/// Numbers of flows, and counts.
impl Coded for u32 {
    fn code(self) -> u64 {
        self.into()
    }
    fn of(code: u64) -> u32 {
        code as u32
    }
}

/// Numbers of groups.
impl Coded for u16 {
    fn code(self) -> u64 {
        self.into()
    }
    fn of(code: u64) -> u16 {
        code as u16
    }
}

/// Counts and times, some unknown.
impl Coded for Option<u64> {
    fn code(self) -> u64 {
        self.map_or(0, |value| value.saturating_add(1))
    }
    fn of(code: u64) -> Option<u64> {
        code.checked_sub(1)
    }
}

/// The numbers of such values.
#[derive(Clone)]
pub struct Codes<T>(Numbers, PhantomData<T>);

impl<T> Default for Codes<T> {
    fn default() -> Codes<T> {
        Codes(Numbers::default(), PhantomData)
    }
}

impl<T: Coded + Clone> Packed for Codes<T> {
    type Value = T;

    fn with_capacity(rows: usize) -> Codes<T> {
        Codes(Numbers::with_capacity(rows), PhantomData)
    }
    fn push(&mut self, value: T) {
        self.0.push(value.code());
    }
    fn get(&self, row: usize) -> T {
        T::of(self.0.get(row))
    }
    fn reverse(&mut self) {
        self.0.reverse();
    }
    fn bytes(&self) -> usize {
        self.0.bytes()
    }
}

impl<T: Coded + Clone> Pack for T {
    type Column = Codes<T>;
}

/// Reals, in four bytes each as long as none loses a bit of its value by it.
#[derive(Clone)]
pub enum Reals {
    /// Four bytes each.
    Single(Vec<f32>),
    /// Eight.
    Double(Vec<f64>),
}

impl Default for Reals {
    fn default() -> Reals {
        Reals::Single(Vec::new())
    }
}

impl Packed for Reals {
    type Value = f64;

    fn with_capacity(rows: usize) -> Reals {
        Reals::Single(Vec::with_capacity(rows))
    }

    fn push(&mut self, value: f64) {
        if let Reals::Single(all) = self {
            let single = value as f32;
            if f64::from(single).to_bits() == value.to_bits() {
                return all.push(single);
            }
            *self = Reals::Double(wider(all));
        }
        if let Reals::Double(all) = self {
            all.push(value);
        }
    }

    fn get(&self, row: usize) -> f64 {
        match self {
            Reals::Single(all) => all[row].into(),
            Reals::Double(all) => all[row],
        }
    }

    fn reverse(&mut self) {
        match self {
            Reals::Single(all) => all.reverse(),
            Reals::Double(all) => all.reverse(),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Reals::Single(all) => 4 * all.len(),
            Reals::Double(all) => 8 * all.len(),
        }
    }
}

impl Pack for f64 {
    type Column = Reals;
}

/// Names of which there are few, each kept once.
#[derive(Clone, Default)]
pub struct Names {
    names: Vec<Arc<str>>,
    places: HashMap<Arc<str>, u64>,
    rows: Numbers,
}

impl Packed for Names {
    type Value = Arc<str>;

    fn with_capacity(rows: usize) -> Names {
        Names { rows: Numbers::with_capacity(rows), ..Names::default() }
    }
    fn push(&mut self, value: Arc<str>) {
        let place = match self.places.get(&value) {
            Some(&place) => place,
            None => {
                let place = self.names.len() as u64;
                self.names.push(value.clone());
                self.places.insert(value, place);
                place
            }
        };
        self.rows.push(place);
    }
    fn get(&self, row: usize) -> Arc<str> {
        self.names[self.rows.get(row) as usize].clone()
    }
    fn reverse(&mut self) {
        self.rows.reverse();
    }
    fn bytes(&self) -> usize {
        self.rows.bytes()
    }
}

impl Pack for Arc<str> {
    type Column = Names;
}

/// Lists of which most are empty.
#[derive(Clone, Default)]
pub struct Lists {
    rows: usize,
    /// Rows whose lists are not empty, in order.
    some: Vec<(usize, Box<[u64]>)>,
}

impl Packed for Lists {
    type Value = Vec<u64>;

    fn with_capacity(_rows: usize) -> Lists {
        Lists::default()
    }
    fn push(&mut self, value: Vec<u64>) {
        if !value.is_empty() {
            self.some.push((self.rows, value.into()));
        }
        self.rows += 1;
    }
    fn get(&self, row: usize) -> Vec<u64> {
        self.some.binary_search_by_key(&row, |&(row, _)| row).map_or_else(|_| Vec::new(), |at| self.some[at].1.to_vec())
    }
    fn reverse(&mut self) {
        self.some.reverse();
        self.some.iter_mut().for_each(|(row, _)| *row = self.rows - 1 - *row);
    }
    fn bytes(&self) -> usize {
        self.some.iter().map(|(row, list)| size_of_val(row) + size_of_val(list) + size_of_val(&**list)).sum()
    }
}

impl Pack for Vec<u64> {
    type Column = Lists;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed<T: Pack>(values: impl IntoIterator<Item = T>) -> T::Column {
        let mut column = T::Column::default();
        values.into_iter().for_each(|value| column.push(value));
        column
    }

    fn all<T: Pack>(column: &T::Column, rows: usize) -> Vec<T> {
        (0..rows).map(|row| column.get(row)).collect()
    }

    #[test]
    fn values_come_back_as_they_were_and_in_reverse() {
        fn check<T: Pack + Clone + PartialEq + std::fmt::Debug>(mut values: Vec<T>) {
            let mut column = packed(values.clone());
            assert_eq!(all::<T>(&column, values.len()), values);
            column.reverse();
            values.reverse();
            assert_eq!(all::<T>(&column, values.len()), values);
        }
        check(vec![0, 254, 255, 256, 65_534, 65_535, 1 << 32, u64::MAX - 1, u64::MAX, 1]);
        check(vec![None, Some(0), Some(1 << 40), None, Some(u64::MAX - 1)]);
        check(vec![0_u16, 255, 256, u16::MAX]);
        check(vec![0.0, 10.0, 0.1, f64::INFINITY, 1e300, -0.0]);
        check(["a", "b", "a"].map(Arc::<str>::from).to_vec());
        check(vec![vec![], vec![1, 2], vec![], vec![], vec![3]]);
    }

    #[test]
    fn a_number_takes_as_many_bytes_as_the_greatest_of_its_column_needs() {
        let wide = |values: &[u64]| match packed(values.iter().copied()).0 {
            Numbers::One(_) => 1,
            Numbers::Two(_) => 2,
            Numbers::Four(_) => 4,
            Numbers::Eight(_) => 8,
        };
        // Each is kept as the next one, and the greatest of all as 0.
        assert_eq!([254, 255, 65_534, 65_535, u64::from(u32::MAX)].map(|n| wide(&[0, n, u64::MAX])), [1, 2, 2, 4, 8]);
    }

    #[test]
    fn a_real_that_four_bytes_cannot_hold_makes_its_column_wide() {
        let is_single = |values: &[f64]| matches!(packed(values.iter().copied()), Reals::Single(_));
        assert!(is_single(&[10.0, 11.5, f64::INFINITY]));
        assert!(!is_single(&[10.0, 0.1]));
    }
}
