//! Addresses of a capture, replaced: equal ones by equal ones, and so that they cannot be turned back without the key.

use siphasher::sip::SipHasher24;
use std::collections::{HashMap, HashSet};
use std::hash::Hasher;
use std::net::IpAddr;

/// What stands for each address.
pub struct Pseudonyms {
    key: [u8; 16],
    given: HashMap<IpAddr, Vec<u8>>,
    used: HashSet<Vec<u8>>,
}

impl Pseudonyms {
    /// Captures with the same words have the same pseudonyms, so that captures of two hosts fit each other. Without words: of a random key.
    pub fn new(words: Option<&str>) -> std::io::Result<Pseudonyms> {
        let mut key = [0; 16];
        match words {
            Some(words) => {
                for (half, first) in key.chunks_mut(8).zip([0u8, 1]) {
                    let mut hash = SipHasher24::new();
                    hash.write(&[first]);
                    hash.write(words.as_bytes());
                    half.copy_from_slice(&hash.finish().to_le_bytes());
                }
            }
            None => std::io::Read::read_exact(&mut std::fs::File::open("/dev/urandom")?, &mut key)?,
        }
        Ok(Pseudonyms { key, given: HashMap::new(), used: HashSet::new() })
    }

    /// Addresses that were replaced.
    pub fn count(&self) -> usize {
        self.given.len()
    }

    /// Replaces the addresses of an Ethernet frame with IP; its checksums, which would tell of them, become zero.
    pub fn replace(&mut self, frame: &mut [u8]) {
        let Some((ethernet, packet)) = frame.split_at_mut_checked(14) else { return };
        let kind = u16::from_be_bytes([ethernet[12], ethernet[13]]);
        ethernet[..12].fill(0);
        let tcp = match kind {
            0x0800 if packet.len() >= 20 => {
                packet[10..12].fill(0);
                self.address::<4>(&mut packet[12..16]);
                self.address::<4>(&mut packet[16..20]);
                usize::from(packet[0] & 15) * 4
            }
            0x86dd if packet.len() >= 40 => {
                self.address::<16>(&mut packet[8..24]);
                self.address::<16>(&mut packet[24..40]);
                40
            }
            _ => return,
        };
        if let Some(checksum) = packet.get_mut(tcp + 16..tcp + 18) {
            checksum.fill(0);
        }
    }

    fn address<const N: usize>(&mut self, bytes: &mut [u8])
    where
        IpAddr: From<[u8; N]>,
    {
        let Ok(old) = <[u8; N]>::try_from(&*bytes) else { return };
        let given = match self.given.get(&IpAddr::from(old)) {
            Some(given) => given,
            None => {
                let new = (0..).map(|turn| self.hashed(&old, turn)).find(|new| !self.used.contains(new));
                let new = new.unwrap_or_else(|| bytes.to_vec());
                self.used.insert(new.clone());
                self.given.entry(IpAddr::from(old)).or_insert(new)
            }
        };
        bytes.copy_from_slice(given);
    }

    /// 10.0.0.0/8 and fd00::/8, which are private (RFC 1918, RFC 4193). `turn`: from 1 where an earlier address took the same.
    fn hashed(&self, old: &[u8], turn: u32) -> Vec<u8> {
        let mut hash = SipHasher24::new_with_key(&self.key);
        hash.write(old);
        hash.write_u32(turn);
        let bits = hash.finish().to_le_bytes();
        match old.len() {
            4 => vec![10, bits[0], bits[1], bits[2]],
            _ => [&[0xfd], &bits[..], &[0; 7]].concat(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(source: [u8; 4], destination: [u8; 4]) -> Vec<u8> {
        let mut frame = vec![7; 54];
        (frame[12], frame[13], frame[14]) = (8, 0, 0x45);
        frame[26..30].copy_from_slice(&source);
        frame[30..34].copy_from_slice(&destination);
        frame
    }

    #[test]
    fn equal_addresses_stay_equal_and_others_apart_and_the_checksums_tell_nothing() {
        let (mut one, mut other) = (Pseudonyms::new(Some("a key")).unwrap(), Pseudonyms::new(Some("a key")).unwrap());
        let (mut there, mut back) = (frame([1, 2, 3, 4], [5, 6, 7, 8]), frame([5, 6, 7, 8], [1, 2, 3, 4]));
        one.replace(&mut there);
        one.replace(&mut back);
        assert_eq!(there[26..30], back[30..34]);
        assert_eq!(there[30..34], back[26..30]);
        assert_ne!(there[26..30], there[30..34]);
        assert_eq!(there[26], 10);
        assert_ne!(there[26..30], [1, 2, 3, 4]);
        assert_eq!((&there[..12], &there[24..26], &there[50..52]), (&[0; 12][..], &[0; 2][..], &[0; 2][..]));
        assert_eq!(one.count(), 2);
        // A capture on another host, whose first address is another.
        let mut elsewhere = frame([5, 6, 7, 8], [9, 9, 9, 9]);
        other.replace(&mut elsewhere);
        assert_eq!(elsewhere[26..30], back[26..30]);
        let mut unlike = frame([1, 2, 3, 4], [5, 6, 7, 8]);
        Pseudonyms::new(Some("another key")).unwrap().replace(&mut unlike);
        assert_ne!(unlike[26..30], there[26..30]);
    }
}
