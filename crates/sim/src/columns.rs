//! The schema of results. A column is declared once, in [`crate::results`], with its name, unit and meaning; Arrow columns, frames, the
//! reference page, the JSON Schema and the stubs are made from [`TABLES`](crate::results::TABLES).

use crate::results::Results;
use std::sync::Arc;

/// Picoseconds in ms, as Polars divides a column by a number (`fanin.statistics.frames.ms`): by its reciprocal, so that both give the same bits.
pub fn milliseconds(ps: u64) -> f64 {
    ps as f64 * (1.0 / 1e9)
}

/// A table of results.
pub struct Table {
    /// Its name in files and frames.
    pub name: &'static str,
    /// What a row is.
    pub doc: &'static str,
    /// Name of the column that numbers the rows in frames, where other tables refer to them.
    pub index: Option<&'static str>,
    /// In order.
    pub columns: &'static [Column],
}

/// A column of a table.
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// Unit of its values; empty for names and ratios. `ps` becomes milliseconds (`*_ms`) in frames.
    pub unit: &'static str,
    /// What it holds.
    doc: &'static str,
    /// What its codes stand for.
    pub codes: Codes,
    /// Its values.
    pub read: for<'a> fn(&'a Results) -> Values<'a>,
}

/// What the numbers of a column stand for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Codes {
    /// Themselves.
    None,
    /// Positions in this list.
    Words(&'static [&'static str]),
    /// Output ports, by their position in the scenario's links.
    Ports,
}

/// Values of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Values<'a> {
    /// 64-bit counts.
    U64(Vec<u64>),
    /// 64-bit counts, some unknown.
    OptionalU64(Vec<Option<u64>>),
    /// 32-bit counts.
    U32(Vec<u32>),
    /// Small codes.
    U8(Vec<u8>),
    /// Reals; what is not finite is unknown.
    F64(Vec<f64>),
    /// Texts.
    Text(Vec<&'a str>),
    /// Texts that several rows share.
    Shared(Vec<Arc<str>>),
    /// Classes, by their position in the scenario's list.
    Class(Vec<u16>),
}

impl Values<'_> {
    /// The values of these rows.
    #[must_use]
    pub fn at(self, rows: &[u32]) -> Self {
        fn pick<T: Clone>(all: &[T], rows: &[u32]) -> Vec<T> {
            rows.iter().map(|&row| all[row as usize].clone()).collect()
        }
        match self {
            Values::U64(all) => Values::U64(pick(&all, rows)),
            Values::OptionalU64(all) => Values::OptionalU64(pick(&all, rows)),
            Values::U32(all) => Values::U32(pick(&all, rows)),
            Values::U8(all) => Values::U8(pick(&all, rows)),
            Values::F64(all) => Values::F64(pick(&all, rows)),
            Values::Text(all) => Values::Text(pick(&all, rows)),
            Values::Shared(all) => Values::Shared(pick(&all, rows)),
            Values::Class(all) => Values::Class(pick(&all, rows)),
        }
    }

    /// Arrow's name of their type.
    pub fn kind(&self) -> &'static str {
        match self {
            Values::U64(_) | Values::OptionalU64(_) => "UInt64",
            Values::U32(_) => "UInt32",
            Values::U8(_) => "UInt8",
            Values::F64(_) => "Float64",
            Values::Text(_) | Values::Shared(_) | Values::Class(_) => "String",
        }
    }
}

impl Column {
    /// As the tables declare it.
    pub(crate) const fn new(
        name: &'static str,
        unit: &'static str,
        doc: &'static str,
        codes: Codes,
        read: for<'a> fn(&'a Results) -> Values<'a>,
    ) -> Column {
        Column { name, unit, doc, codes, read }
    }

    /// What it holds, in a sentence.
    pub fn doc(&self) -> &'static str {
        self.doc.trim()
    }

    /// Arrow's name of its type.
    pub fn kind(&self) -> &'static str {
        (self.read)(&Results::default()).kind()
    }

    /// A value may be unknown.
    pub fn nullable(&self) -> bool {
        matches!((self.read)(&Results::default()), Values::OptionalU64(_) | Values::F64(_))
    }
}

/// The class of a row.
#[derive(Clone, Copy)]
pub(crate) struct Class(pub u16);

/// A type of cell.
pub(crate) trait Cell<'a>: Sized {
    /// A column of them.
    fn column(cells: impl Iterator<Item = Self>) -> Values<'a>;
}

macro_rules! cells {
    ($($type:ty => $values:ident, $cell:ident => $value:expr;)*) => {$(
        impl<'a> Cell<'a> for $type {
            fn column(cells: impl Iterator<Item = Self>) -> Values<'a> {
                Values::$values(cells.map(|$cell| $value).collect())
            }
        }
    )*};
}
cells! {
    u64 => U64, n => n;
    &'a u64 => U64, n => *n;
    Option<u64> => OptionalU64, n => n;
    &'a Option<u64> => OptionalU64, n => *n;
    u32 => U32, n => n;
    &'a u32 => U32, n => *n;
    &'a u16 => U32, n => u32::from(*n);
    &'a u8 => U8, n => *n;
    f64 => F64, x => x;
    &'a f64 => F64, x => *x;
    &'a String => Text, text => text.as_str();
    Arc<str> => Shared, text => text;
    &'a &'static str => Text, text => *text;
    Class => Class, class => class.0;
}

/// Declares the row of a table, and its columns: a line is a field and the column of its name. `= |row| ...` computes the cell instead;
/// what follows `and` has a column and no field.
macro_rules! rows {
    (
        $(#[doc = $about:literal])+
        $rows:ident: $row:ident $(numbered $index:literal)? {
            $($(#[doc = $doc:literal])+ $field:ident: $type:ty, $unit:literal $(= $cell:expr)?;)*
        }
        $(and { $($(#[doc = $more_doc:literal])+ $more:ident, $more_unit:literal = $more_cell:expr;)* })?
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, Default)]
        pub struct $row {
            $($(#[doc = $doc])+ pub $field: $type,)*
        }

        impl $row {
            /// Its columns.
            pub const COLUMNS: &'static [Column] = &[
                $(Column::new(stringify!($field), $unit, concat!($($doc),+), Codes::None, |results| {
                    Cell::column(results.$rows.iter().map(rows!(@cell $row $field $($cell)?)))
                }),)*
                $($(Column::new(stringify!($more), $more_unit, concat!($($more_doc),+), Codes::None, |results| {
                    let cell: fn(&$row) -> _ = $more_cell;
                    Cell::column(results.$rows.iter().map(cell))
                }),)*)?
            ];
            const TABLE: Table = Table {
                name: stringify!($rows),
                doc: concat!($($about),+),
                index: rows!(@index $($index)?),
                columns: Self::COLUMNS,
            };
        }
    };
    (
        $(#[doc = $about:literal])+
        $rows:ident: $row:ident numbered $index:literal packed as $packed:ident {
            $($(#[doc = $doc:literal])+ $field:ident: $type:ty, $unit:literal $(= $cell:expr)?;)*
        }
        and { $($(#[doc = $more_doc:literal])+ $more:ident, $more_unit:literal = $more_cell:expr;)* }
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, Default)]
        pub struct $row {
            $($(#[doc = $doc])+ pub $field: $type,)*
        }

        /// Such rows, as columns in as few bytes as their values take.
        #[derive(Clone, Default)]
        pub struct $packed {
            rows: usize,
            $($field: <$type as Pack>::Column,)*
        }

        impl $packed {
            /// With room for so many rows.
            pub fn with_capacity(rows: usize) -> Self {
                Self { rows: 0, $($field: Packed::with_capacity(rows),)* }
            }

            /// Adds a row.
            pub fn push(&mut self, row: $row) {
                self.rows += 1;
                $(self.$field.push(row.$field);)*
            }

            /// The last row becomes the first.
            pub fn reverse(&mut self) {
                $(self.$field.reverse();)*
            }

            /// How many rows there are.
            pub fn len(&self) -> usize {
                self.rows
            }

            /// There is no row.
            pub fn is_empty(&self) -> bool {
                self.rows == 0
            }

            /// A row, where there are so many.
            pub fn get(&self, row: usize) -> Option<$row> {
                (row < self.rows).then(|| self.row(row))
            }

            /// A row.
            ///
            /// # Panics
            /// When there are not so many.
            pub fn row(&self, row: usize) -> $row {
                $row { $($field: self.$field.get(row),)* }
            }

            /// What they take, in bytes.
            pub fn bytes(&self) -> usize {
                0 $(+ self.$field.bytes())*
            }

            /// All rows, in order.
            pub fn iter(&self) -> impl DoubleEndedIterator<Item = $row> + ExactSizeIterator + '_ {
                (0..self.rows).map(|row| self.row(row))
            }
        }

        impl<'a> IntoIterator for &'a $packed {
            type Item = $row;
            type IntoIter = Box<dyn Iterator<Item = $row> + 'a>;
            fn into_iter(self) -> Self::IntoIter {
                Box::new(self.iter())
            }
        }

        impl FromIterator<$row> for $packed {
            fn from_iter<I: IntoIterator<Item = $row>>(rows: I) -> Self {
                let mut packed = Self::default();
                rows.into_iter().for_each(|row| packed.push(row));
                packed
            }
        }

        impl std::fmt::Debug for $packed {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_list().entries(self.iter()).finish()
            }
        }

        impl $row {
            /// Its columns.
            pub const COLUMNS: &'static [Column] = &[
                $(Column::new(stringify!($field), $unit, concat!($($doc),+), Codes::None, |results| {
                    rows!(@packed results.$rows, $row, $field $($cell)?)
                }),)*
                $(Column::new(stringify!($more), $more_unit, concat!($($more_doc),+), Codes::None, |results| {
                    rows!(@packed results.$rows, $row, $more $more_cell)
                }),)*
            ];
            const TABLE: Table = Table {
                name: stringify!($rows),
                doc: concat!($($about),+),
                index: Some($index),
                columns: Self::COLUMNS,
            };
        }
    };
    (@packed $rows:expr, $row:ident, $field:ident) => {
        Cell::column((0..$rows.len()).map(|row| $rows.$field.get(row)))
    };
    (@packed $rows:expr, $row:ident, $field:ident $cell:expr) => {{
        let cell: fn(&$row) -> _ = $cell;
        Cell::column($rows.iter().map(|row| cell(&row)))
    }};
    (@cell $row:ident $field:ident) => { |row: &$row| &row.$field };
    (@cell $row:ident $field:ident $cell:expr) => {{
        let cell: fn(&$row) -> _ = $cell;
        cell
    }};
    (@index) => { None };
    (@index $index:literal) => { Some($index) };
}
pub(crate) use rows;

/// Declares a trace as vectors of equal length, and its columns: a line is a vector and the column of its name, or the name after `as`.
/// What follows `and` is kept for other writers and has no column.
macro_rules! trace {
    (
        $(#[doc = $about:literal])+
        $trace:ident: $row:ident {
            $($(#[doc = $doc:literal])+ $field:ident: $type:ty, $unit:literal $(as $name:literal)? $(= $codes:expr)?;)*
        }
        $(and { $($(#[doc = $more_doc:literal])+ $more:ident: $more_type:ty;)* })?
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, Default)]
        pub struct $row {
            $($(#[doc = $doc])+ pub $field: Vec<$type>,)*
            $($($(#[doc = $more_doc])+ pub $more: Vec<$more_type>,)*)?
        }

        impl $row {
            /// Its columns.
            pub const COLUMNS: &'static [Column] = &[
                $(Column::new(
                    trace!(@name $field $($name)?), $unit, concat!($($doc),+), trace!(@codes $($codes)?),
                    |results| Cell::column(results.traces.$trace.$field.iter()),
                ),)*
            ];
            const TABLE: Table =
                Table { name: stringify!($trace), doc: concat!($($about),+), index: None, columns: Self::COLUMNS };
        }
    };
    (@name $field:ident) => { stringify!($field) };
    (@name $field:ident $name:literal) => { $name };
    (@codes) => { Codes::None };
    (@codes $codes:expr) => { $codes };
}
pub(crate) use trace;
