//! A buffer that several ports share.

use crate::port::Port;
use alloc::vec::Vec;

/// Output ports that share one buffer (Choudhury and Hahne's dynamic threshold, ToN 1998).
#[derive(Clone, Debug)]
pub struct SharedBuffer {
    /// The ports, as positions among all ports of the caller.
    pub ports: Vec<u32>,
    /// Bytes in common.
    pub size: u64,
    /// A port may take this times what is free.
    pub alpha: f64,
}

impl SharedBuffer {
    /// Bytes that the buffer leaves to a port now, what the port holds already included.
    pub fn room(&self, ports: &mut [Port], port: usize, now: u64) -> u64 {
        let mut used = 0;
        for &member in &self.ports {
            let member = &mut ports[member as usize];
            member.advance(now);
            used += member.queued_bytes();
        }
        let free = self.size.saturating_sub(used);
        let own = ports[port].queued_bytes();
        ((self.alpha * free as f64) as u64).min(own + free)
    }
}
