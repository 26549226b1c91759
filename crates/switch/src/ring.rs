//! A queue in a ring of slots: packets on a link, segments that are outstanding.

use alloc::boxed::Box;
use alloc::vec;
use core::ops::{Index, IndexMut};

/// Slots of the first allocation.
const FIRST_SLOTS: usize = 4;

/// Values that come at the end and go from the front. Cheaper than the standard library's queue where every packet passes through one.
///
/// Values have numbers, one after the other since the beginning; the numbers wrap. A value's slot is its number modulo the number of
/// slots, a power of two.
#[derive(Clone, Debug, Default)]
pub struct Ring<T> {
    slots: Box<[T]>,
    /// Number of the first value.
    head: u32,
    /// Number of the next value.
    tail: u32,
}

impl<T: Copy + Default> Ring<T> {
    #[inline]
    fn slot(&self, number: u32) -> usize {
        // Without slots this is the greatest index there is, which no slot has.
        number as usize & self.slots.len().wrapping_sub(1)
    }

    /// How many values.
    #[inline]
    pub fn len(&self) -> usize {
        self.tail.wrapping_sub(self.head) as usize
    }

    /// None.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.head == self.tail
    }

    /// Number of the first value.
    #[inline]
    pub fn head(&self) -> u32 {
        self.head
    }

    /// Number of the next value that comes.
    #[inline]
    pub fn tail(&self) -> u32 {
        self.tail
    }

    /// The slot of this number, which holds its value from when it comes until long after it has gone.
    #[inline]
    pub fn at(&self, number: u32) -> Option<&T> {
        self.slots.get(self.slot(number))
    }

    /// The first value.
    #[inline]
    pub fn front(&self) -> Option<&T> {
        if self.is_empty() { None } else { self.at(self.head) }
    }

    /// The last value.
    #[inline]
    pub fn back(&self) -> Option<&T> {
        if self.is_empty() { None } else { self.at(self.tail.wrapping_sub(1)) }
    }

    /// The value so many after the first.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&T> {
        if index < self.len() { self.at(self.head.wrapping_add(index as u32)) } else { None }
    }

    /// The same, to change.
    #[inline]
    pub fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        // Numbers wrap, and so do slots: their count divides 2^32.
        let slot = self.slot(self.head.wrapping_add(index as u32));
        if index < self.len() { self.slots.get_mut(slot) } else { None }
    }

    /// All values in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &T> + ExactSizeIterator {
        (0..self.len()).map(|index| &self[index])
    }

    /// Adds a value at the end.
    #[inline]
    pub fn push(&mut self, value: T) {
        // Each slot has a value: the next number's would be the first one's.
        if self.len() == self.slots.len() {
            self.grow();
        }
        let slot = self.slot(self.tail);
        if let Some(place) = self.slots.get_mut(slot) {
            *place = value;
        }
        self.tail = self.tail.wrapping_add(1);
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        // Numbers stay; their slots are those modulo the new size.
        let mut slots = vec![T::default(); (2 * self.slots.len()).max(FIRST_SLOTS)].into_boxed_slice();
        let mask = slots.len() - 1;
        for (index, value) in self.iter().enumerate() {
            slots[self.head.wrapping_add(index as u32) as usize & mask] = *value;
        }
        self.slots = slots;
    }

    /// Gives up the first value. There must be one.
    #[inline]
    pub fn drop_front(&mut self) {
        debug_assert!(!self.is_empty(), "there is a first value");
        // The value stays in its slot: `at` finds it until another takes the slot.
        self.head = self.head.wrapping_add(1);
    }

    /// Gives up all values before this number.
    pub fn drop_before(&mut self, number: u32) {
        debug_assert!(number.wrapping_sub(self.head) as usize <= self.len(), "the number is a value's or the next");
        self.head = number;
    }

    /// The first index at whose value `before` does not hold; it holds for all values up to one, and for none after that.
    pub fn partition_point(&self, before: impl Fn(&T) -> bool) -> usize {
        // Bisection: it holds for all below `low`, for none from `high` on.
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low.midpoint(high);
            if before(&self[middle]) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

impl<T: Copy + Default> Index<usize> for Ring<T> {
    type Output = T;
    #[inline]
    fn index(&self, index: usize) -> &T {
        assert!(index < self.len(), "index {index} of {}", self.len());
        &self.slots[self.slot(self.head.wrapping_add(index as u32))]
    }
}

impl<T: Copy + Default> IndexMut<usize> for Ring<T> {
    #[inline]
    fn index_mut(&mut self, index: usize) -> &mut T {
        assert!(index < self.len(), "index {index} of {}", self.len());
        let slot = self.slot(self.head.wrapping_add(index as u32));
        &mut self.slots[slot]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::VecDeque;
    use proptest::prelude::*;

    proptest! {
        /// Beside the standard library's queue, across the point where the numbers wrap.
        #[test]
        fn values_go_in_the_order_in_which_they_came(steps in proptest::collection::vec(0u8..3, 0..300)) {
            let start = u32::MAX - 40;
            let (mut ours, mut theirs) = (Ring { head: start, tail: start, ..Ring::default() }, VecDeque::new());
            for (n, step) in (0u64..).zip(steps) {
                if step > 0 {
                    ours.push(n);
                    theirs.push_back(n);
                } else if theirs.pop_front().is_some() {
                    ours.drop_front();
                }
                prop_assert_eq!((ours.len(), ours.front(), ours.back()), (theirs.len(), theirs.front(), theirs.back()));
                prop_assert!(ours.iter().eq(theirs.iter()));
                let in_order = |v: &u64| *v < n / 2;
                prop_assert_eq!(ours.partition_point(in_order), theirs.partition_point(in_order));
            }
        }
    }
}
