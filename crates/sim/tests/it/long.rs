//! Flows of more than 4 GB: positions that are kept in 32 bits come around.

use crate::common::*;
use fanin_sim::stack::Stack;
use fanin_units::{Bytes, Duration, QueueLimit, Rate};

const SIZE: u32 = 60_000;
const MANY: u64 = (1 << 32) + (1 << 28);

#[test]
fn flows_of_more_than_4_gb_are_delivered_through_losses_behind_the_wrap() {
    let mut spec = star(2, Rate::gbps(400), Duration::us(5), Some(QueueLimit::Packets(30)), None);
    fast_access(&mut spec, Rate::gbps(800));
    // The last acknowledgements arrive, too.
    spec.stop_when_done = false;
    spec.trace.throughput_interval = Some(Duration::ms(10));
    let window = Bytes::new(100 * u64::from(SIZE));
    let t = transport(&mut spec, "reno", Stack { mss: SIZE, receive_window: window, ..crate::linux::linux() });
    for sender in 0..2 {
        let f = flow(&mut spec, sender, t);
        message(&mut spec, f, MANY, Duration::ZERO);
    }
    let r = run(&spec);
    assert!(r.complete);
    for (n, row) in r.flows.iter().enumerate() {
        assert_eq!((row.bytes_delivered, row.bytes_acked), (MANY, MANY));
        assert!(row.retransmissions > 50 && row.bytes_sent >= MANY, "{row:?}");
        let t = &r.traces.throughput;
        let of_flow = t.flow.iter().zip(&t.bytes).zip(&t.time_ps).filter(|((f, _), _)| **f == n as u32);
        assert_eq!(of_flow.clone().map(|((_, b), _)| b).sum::<u64>(), MANY);
        // It never stops.
        let last = of_flow.map(|((_, b), _)| *b).rev().nth(1).unwrap();
        assert!(last > MANY / 1_000);
    }
}
