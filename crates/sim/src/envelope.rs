//! Traces as what a picture or a bound on memory leaves of them: of each line and slot of time the first, least, greatest and last row.
//!
//! Rows come as often as asked for, in any mixture of lines, each line in the order of time.

/// A row of a trace.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// Which line it is of; counted from 0.
    pub line: u32,
    /// When, ms.
    pub time: f64,
    /// The value; NaN: none.
    pub value: f64,
}

/// How many times an envelope may be made twice as fine to fill its rows.
const FINER: usize = 3;

/// What all rows have in common.
struct Extent {
    count: u64,
    lines: u64,
    low: f64,
    high: f64,
}

impl Extent {
    fn of(rows: impl Iterator<Item = Point>) -> Extent {
        let mut extent = Extent { count: 0, lines: 0, low: f64::INFINITY, high: f64::NEG_INFINITY };
        let mut seen = Vec::new();
        for row in rows {
            extent.count += 1;
            extent.lines += u64::from(!std::mem::replace(at(&mut seen, row.line, false), true));
            (extent.low, extent.high) = (extent.low.min(row.time), extent.high.max(row.time));
        }
        extent
    }

    /// The slot of a time where a line has `points` of them. As Polars divides by a number, by its reciprocal.
    fn slot(&self, points: u64) -> impl Fn(f64) -> f64 + use<> {
        let (low, width) = (self.low, (self.high - self.low) / points as f64);
        let per_slot = 1.0 / if width == 0.0 { 1.0 } else { width };
        // Cut off, not rounded down, which is a call: of what lies before the first slot either is in that one.
        move |time| ((time - low) * per_slot) as i64 as f64
    }

    /// How many slots of all lines have a row, where a line has so many and one for the end: of several numbers in one pass.
    fn filled(&self, rows: impl Iterator<Item = Point>, points: [u64; FINER]) -> [u64; FINER] {
        let slots = points.map(|points| self.slot(points));
        let mut last = Vec::new();
        let mut filled = [0; FINER];
        for row in rows {
            let last = at(&mut last, row.line, [f64::NAN; FINER]);
            for ((slot, last), filled) in slots.iter().zip(last).zip(&mut filled) {
                let here = slot(row.time);
                *filled += u64::from(std::mem::replace(last, here) != here);
            }
        }
        filled
    }
}

/// The state of a line.
fn at<T: Clone>(lines: &mut Vec<T>, line: u32, new: T) -> &mut T {
    let line = line as usize;
    if lines.len() <= line {
        lines.resize(line + 1, new);
    }
    &mut lines[line]
}

/// The slot that a line is in.
#[derive(Clone, Copy)]
struct Open {
    slot: f64,
    first: u32,
    last: u32,
    least: (f64, u32),
    greatest: (f64, u32),
}

impl Open {
    /// No value is less or greater than none.
    const NONE: Open = Open { slot: f64::NAN, first: 0, last: 0, least: (f64::NAN, 0), greatest: (f64::NAN, 0) };

    fn at(slot: f64, row: u32) -> Open {
        Open { slot, first: row, last: row, least: (f64::NAN, row), greatest: (f64::NAN, row) }
    }

    fn add(&mut self, row: u32, value: f64) {
        self.last = row;
        if !value.is_nan() {
            // Of equal ones the first.
            if !matches!(self.least.0.partial_cmp(&value), Some(order) if order.is_le()) {
                self.least = (value, row);
            }
            if !matches!(self.greatest.0.partial_cmp(&value), Some(order) if order.is_ge()) {
                self.greatest = (value, row);
            }
        }
    }

    fn close(&self, shown: &mut Vec<u32>) {
        if !self.slot.is_nan() {
            let mut rows = [self.first, self.least.1, self.greatest.1, self.last];
            rows.sort_unstable();
            for (n, row) in rows.into_iter().enumerate() {
                if n == 0 || row != rows[n - 1] {
                    shown.push(row);
                }
            }
        }
    }
}

/// Numbers of the rows that show lines of `points` slots, in their order. The slots span `low` to `high` where these are part of something longer,
/// else from the first row to the last.
pub fn envelope<I: Iterator<Item = Point>>(rows: impl Fn() -> I, points: u64, span: Option<(f64, f64)>) -> Vec<u32> {
    let extent = match span {
        Some((low, high)) => Extent { count: 0, lines: 0, low, high },
        None => Extent::of(rows()),
    };
    of_extent(&extent, rows(), points)
}

fn of_extent(extent: &Extent, rows: impl Iterator<Item = Point>, points: u64) -> Vec<u32> {
    let (slot, most) = (extent.slot(points), points as f64 - 1.0);
    let mut shown = Vec::new();
    let mut lines = Vec::new();
    for (number, row) in (0..).zip(rows) {
        let open = at(&mut lines, row.line, Open::NONE);
        let here = slot(row.time).clamp(0.0, most);
        if open.slot != here {
            open.close(&mut shown);
            *open = Open::at(here, number);
        }
        open.add(number, row.value);
    }
    for open in &lines {
        open.close(&mut shown);
    }
    shown.sort_unstable();
    shown
}

/// Numbers of at most `most` rows, in their order: all of them if they fit, else as fine an envelope as does. Slots of time without a row
/// cost nothing.
pub fn fitted<I: Iterator<Item = Point>>(rows: impl Fn() -> I, most: u64) -> Vec<u32> {
    let extent = Extent::of(rows());
    if extent.count <= most {
        return (0..extent.count as u32).collect();
    }
    let coarsest = (most / (4 * extent.lines)).max(1);
    let finer = std::array::from_fn(|n| coarsest << (FINER - n));
    let fits = extent.filled(rows(), finer).map(|filled| 4 * filled <= most);
    let points = finer.into_iter().zip(fits).find(|&(_, fits)| fits).map_or(coarsest, |(points, _)| points);
    of_extent(&extent, rows(), points)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Line, time, value.
    fn rows(all: &[(u32, f64, f64)]) -> impl Iterator<Item = Point> + '_ {
        all.iter().map(|&(line, time, value)| Point { line, time, value })
    }

    #[test]
    fn a_slot_shows_its_first_least_greatest_and_last_row() {
        let trace = [(0, 0.0, 0.0), (0, 1.0, 9.0), (0, 2.0, 1.0), (0, 3.0, 9.0), (0, 4.0, -1.0), (0, 5.0, 2.0)];
        assert_eq!(envelope(|| rows(&trace), 1, None), [0, 1, 4, 5]);
    }

    #[test]
    fn lines_that_alternate_are_thinned_each_for_itself() {
        let of = |line, slope: f64| (0..100).map(move |n| (line, f64::from(n), slope * f64::from(n)));
        let mixed: Vec<_> = of(0, 1.0).zip(of(1, -1.0)).flat_map(|(a, b)| [a, b]).collect();
        let apart: Vec<_> = of(0, 1.0).chain(of(1, -1.0)).collect();
        let shown = |trace: &[(u32, f64, f64)]| {
            let mut shown: Vec<_> = fitted(|| rows(trace), 50).iter().map(|&n| trace[n as usize]).collect();
            shown.sort_by(|a, b| a.partial_cmp(b).unwrap());
            shown
        };
        assert_eq!(shown(&mixed), shown(&apart));
        assert!((20..=50).contains(&shown(&mixed).len()));
    }

    #[test]
    fn a_part_of_a_span_is_thinned_as_the_whole_is() {
        let whole: Vec<_> = (0..90).map(|n| (0, f64::from(n), f64::from(n * 37 % 11))).collect();
        let shown = envelope(|| rows(&whole), 9, None);
        let apart = [0..40, 40..90].map(|part| {
            let lines: Vec<_> = whole[part.clone()].iter().map(|&(_, time, value)| (0, time, value)).collect();
            envelope(|| rows(&lines), 9, Some((0.0, 89.0))).into_iter().map(move |n| n + part.start as u32)
        });
        let together: Vec<u32> = apart.into_iter().flatten().collect();
        // The slot that is cut in two is shown twice.
        assert!(shown.iter().all(|n| together.contains(n)) && together.len() <= shown.len() + 4);
    }

    #[test]
    fn rows_without_a_value_show_where_they_begin_and_end() {
        let trace = [(0, 0.0, f64::NAN), (0, 1.0, f64::NAN), (0, 2.0, f64::NAN)];
        assert_eq!(envelope(|| rows(&trace), 1, None), [0, 2]);
        assert_eq!(fitted(|| rows(&trace), 3), [0, 1, 2]);
    }
}
