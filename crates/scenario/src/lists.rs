//! Many short lists in one: a million lists of one item take no allocation each.

/// Lists of `T`, in the order they were added.
#[derive(Clone, Debug, PartialEq)]
pub struct Lists<T> {
    items: Vec<T>,
    /// Where each list ends in `items`; it begins where the one before ends.
    ends: Vec<u32>,
}

impl<T> Lists<T> {
    /// Adds a list.
    pub fn add(&mut self, list: impl IntoIterator<Item = T>) {
        self.items.extend(list);
        self.ends.push(self.items.len() as u32);
    }

    /// How many lists there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// List `n`, from 0.
    pub fn get(&self, n: usize) -> Option<&[T]> {
        let end = *self.ends.get(n)? as usize;
        let begin = n.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        self.items.get(begin..end)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &[T]> {
        (0..self.len()).filter_map(|n| self.get(n))
    }

    /// Gives back room for more.
    pub fn shrink(&mut self) {
        self.items.shrink_to_fit();
        self.ends.shrink_to_fit();
    }
}

impl<T> Default for Lists<T> {
    fn default() -> Lists<T> {
        Lists { items: Vec::new(), ends: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_come_back_in_order_and_empty_ones_stay_empty() {
        let mut lists = Lists::default();
        for list in [&[3, 4][..], &[], &[5]] {
            lists.add(list.iter().copied());
        }
        assert_eq!(lists.iter().collect::<Vec<_>>(), [&[3, 4][..], &[], &[5]]);
        assert_eq!((lists.get(2), lists.get(3), lists.len()), (Some(&[5][..]), None, 3));
    }
}
