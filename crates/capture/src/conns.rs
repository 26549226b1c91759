//! Connections in progress by number: those that packets come on are at hand, the others are packed. At hand one takes two kilobytes, most of
//! them counts and times that are zero; packed a quarter of it or less.

use crate::conn::Conn;

/// So many connections are at hand at most: 80 MB, and more than a tap sees at once in most places.
const AT_HAND: usize = 1 << 15;

/// All connections of a capture.
#[derive(Default)]
pub(crate) struct Conns {
    /// By number.
    all: Vec<Place>,
    at_hand: Vec<Slot>,
    /// Where the search for one to pack goes on: around, and past those that were used since it came by.
    hand: usize,
    scratch: Vec<u8>,
}

enum Place {
    /// A position in `at_hand`.
    AtHand(u32),
    Packed(Box<[u8]>),
}

struct Slot {
    number: u32,
    used: bool,
    conn: Conn,
}

impl Conns {
    /// Connections so far.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Adds one; its number is the number of those before it.
    pub fn push(&mut self, conn: Conn) {
        let number = self.all.len() as u32;
        let place = self.bring(number, conn);
        self.all.push(Place::AtHand(place));
    }

    /// The connection of this number.
    #[inline]
    pub fn at(&mut self, number: usize) -> &mut Conn {
        let place = match self.all[number] {
            Place::AtHand(place) => place,
            Place::Packed(_) => self.unpack(number),
        };
        let slot = &mut self.at_hand[place as usize];
        slot.used = true;
        &mut slot.conn
    }

    #[cold]
    fn unpack(&mut self, number: usize) -> u32 {
        let Place::Packed(bytes) = std::mem::replace(&mut self.all[number], Place::AtHand(0)) else { return 0 };
        let place = self.bring(number as u32, unpacked(&bytes));
        self.all[number] = Place::AtHand(place);
        place
    }

    /// Puts a connection at hand, where one that was not used lately is packed if there are many.
    fn bring(&mut self, number: u32, conn: Conn) -> u32 {
        let slot = Slot { number, used: true, conn };
        if self.at_hand.len() < AT_HAND {
            self.at_hand.push(slot);
            return self.at_hand.len() as u32 - 1;
        }
        while std::mem::take(&mut self.at_hand[self.hand].used) {
            self.hand = (self.hand + 1) % AT_HAND;
        }
        let place = self.hand;
        self.hand = (self.hand + 1) % AT_HAND;
        let before = std::mem::replace(&mut self.at_hand[place], slot);
        self.scratch.clear();
        let scratch = std::mem::take(&mut self.scratch);
        self.scratch = postcard::to_extend(&before.conn, scratch).expect("a vector takes any number of bytes");
        self.all[before.number as usize] = Place::Packed(self.scratch.as_slice().into());
        place as u32
    }

    /// All, in order. What has been taken is freed on the way.
    pub fn into_all(self) -> impl Iterator<Item = Conn> {
        let mut at_hand: Vec<Option<Conn>> = self.at_hand.into_iter().map(|slot| Some(slot.conn)).collect();
        self.all.into_iter().filter_map(move |place| match place {
            Place::AtHand(place) => at_hand[place as usize].take(),
            Place::Packed(bytes) => Some(unpacked(&bytes)),
        })
    }
}

fn unpacked(bytes: &[u8]) -> Conn {
    postcard::from_bytes(bytes).expect("a connection that was packed")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::{Addr, Segment};

    /// What is at hand bounds the memory that a capture of a million connections takes; the others come back as they were.
    #[test]
    fn of_many_connections_32768_are_at_hand() {
        let mut conns = Conns::default();
        for n in 0..32_800 {
            conns.push(Conn::new(n, &Segment::default(), [(Addr(1), 1), (Addr(2), 2)], None, [n, n + 1], u64::from(n)));
        }
        assert_eq!((conns.len(), conns.at_hand.len()), (32_800, 32_768));
        let packed = conns.all.iter().filter(|place| matches!(place, Place::Packed(_))).count();
        assert_eq!(packed, 32);
        assert!(conns.into_all().enumerate().all(|(n, conn)| conn.last() == n as u64));
    }
}
