//! A buffer that several ports share.

use alloc::vec::Vec;

/// Output ports that share one buffer (Choudhury and Hahne's dynamic threshold, ToN 1998).
#[derive(Clone, Debug)]
pub struct SharedBuffer {
    /// The ports, as positions among all ports of the caller.
    ports: Vec<u32>,
    /// Bytes in common.
    size: u64,
    /// A port may take this times what is free.
    alpha: f64,
    /// Those of the ports that may hold something: of many only these are asked how much.
    holding: Vec<u32>,
}

impl SharedBuffer {
    /// A buffer of `size` bytes for these ports, of which each may take `alpha` times what is free.
    pub fn new(ports: Vec<u32>, size: u64, alpha: f64) -> SharedBuffer {
        SharedBuffer { ports, size, alpha, holding: Vec::new() }
    }

    /// Whether a port takes part.
    pub fn is_for(&self, port: u32) -> bool {
        self.ports.contains(&port)
    }

    /// Bytes that the buffer leaves to a port now, what the port holds already included. To be asked before every packet that is offered
    /// to one of the ports; `queued` says how many bytes a port holds now ([`crate::Port::queue`]).
    pub fn room(&mut self, port: u32, mut queued: impl FnMut(u32) -> u64) -> u64 {
        // Q(t): what all its ports hold now.
        let mut used = 0;
        self.holding.retain(|&member| {
            let bytes = queued(member);
            used += bytes;
            bytes > 0
        });
        let own = queued(port);
        if own == 0 {
            self.holding.push(port);
        }
        let free = self.size.saturating_sub(used);
        // T = alpha (B - Q(t)): each port up to the same threshold, which falls as the buffer fills.
        // n full ports settle at alpha B / (1 + n alpha): with alpha 1 one port takes half of B, three a quarter each.
        ((self.alpha * free as f64) as u64).min(own + free)
    }
}
