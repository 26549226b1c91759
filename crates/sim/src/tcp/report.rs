//! What a sender tells of itself: a row of its trace at each change, and its totals at the end.

use super::sender::{Sender, Totals};
use super::uplink::Uplink;
use crate::net::Net;
use crate::results::FlowStats;
use crate::trace::WindowRow;
use fanin_cc::Probe;

impl Sender {
    /// Writes a row if this flow is watched.
    #[inline]
    pub(super) fn trace(&mut self, net: &mut Uplink<'_>) {
        let cwnd = self.control.cwnd;
        if cwnd > self.counters.max_cwnd {
            self.counters.max_cwnd = cwnd;
        }
        if net.trace.watches(self.flow) {
            self.write_trace(net);
        }
    }

    #[cold]
    fn write_trace(&mut self, net: &mut Uplink<'_>) {
        let row = WindowRow {
            cwnd: self.window_in_force(),
            ssthresh: self.control.ssthresh,
            in_flight: self.in_flight(),
            srtt: self.rtt.srtt().ps(),
            state: self.state as u8,
        };
        let net: &mut Net = net;
        net.trace.window(net.now, self.flow, row);
        if !net.trace.internals {
            return;
        }
        struct Writer<'a>(&'a mut Net, u32);
        impl Probe for Writer<'_> {
            fn value(&mut self, name: &'static str, value: f64) {
                self.0.trace.internal(self.0.now, self.1, name, value);
            }
        }
        self.cc.observe(&mut Writer(net, self.flow));
    }

    /// What it has done.
    pub fn totals(&self) -> Totals {
        Totals {
            counters: self.counters,
            acked: self.una,
            cwnd: self.control.cwnd,
            srtt: self.rtt.srtt(),
            min_rtt: self.rtt.min(),
        }
    }
}

impl Totals {
    /// Adds them to a flow's row.
    pub fn report(&self, row: &mut FlowStats) {
        let c = &self.counters;
        row.segments = c.segments;
        row.bytes_sent = c.bytes_sent;
        row.bytes_acked = self.acked;
        row.retransmissions = u64::from(c.retransmissions);
        row.fast_recoveries = u64::from(c.fast_recoveries);
        row.timeouts = u64::from(c.timeouts);
        row.timeout_ps = c.timeout_ps;
        row.ece_acks = u64::from(c.ece_acks);
        row.ecn_reductions = u64::from(c.ecn_reductions);
        row.tail_probes = u64::from(c.tail_probes);
        row.undos = u64::from(c.undos);
        // `Counters` begin with u64::MAX: no segment was sent.
        row.first_send_ps = (c.first_send != u64::MAX).then_some(c.first_send);
        row.cwnd = self.cwnd;
        row.max_cwnd = c.max_cwnd.max(row.cwnd);
        row.srtt_ps = self.srtt.ps();
        row.min_rtt_ps = self.min_rtt.ps();
    }
}
