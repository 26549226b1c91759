//! Segmentation offload at the sender (`stack.tso`), seen where packets leave the host.

use crate::common::*;
use fanin_sim::hosts::HostModel;
use fanin_sim::packet::flags;
use fanin_sim::results::Results;
use fanin_sim::spec::*;
use fanin_sim::stack::{Nagle, Stack};
use fanin_units::{Bytes, Duration, QueueLimit, Rate};

const MSS: u64 = 1448;

/// One message of so many segments from one host to another, whose link is a tenth as fast as the network; over a connection that is open, or is opened for it.
fn one_message_over(handshake: bool, segments: u64, tso: bool) -> Results {
    let mut spec = star(1, Rate::gbps(10), Duration::us(50), None, None);
    spec.links[2].rate = Rate::gbps(1);
    let stack = Stack { tso, handshake, send_jitter: Duration::ZERO, clock_error_ppm: 0.0, ..Stack::linux() };
    let t = transport(&mut spec, "reno", stack);
    let f = flow(&mut spec, 0, t);
    message(&mut spec, f, segments * MSS, Duration::ZERO);
    spec.trace.packets = vec![LinkId(2)];
    run(&spec)
}

fn one_message(segments: u64, tso: bool) -> Results {
    one_message_over(false, segments, tso)
}

/// Segments of the host's bursts, in order: those that end with PSH.
fn bursts(r: &Results) -> Vec<u64> {
    let p = &r.traces.packets;
    let mut found = vec![0];
    for i in
        (0..p.seq.len()).filter(|&i| p.event[i] == 0 && p.payload[i] > 0 && p.flags[i] & flags::RETRANSMISSION == 0)
    {
        *found.last_mut().unwrap() += 1;
        if p.flags[i] & flags::PUSH != 0 {
            found.push(0);
        }
    }
    found.retain(|&n| n > 0);
    found
}

/// An initial window of ten leaves as two halves (`tcp_cwnd_test`).
#[test]
fn a_burst_is_at_most_half_of_the_window_and_ends_with_push() {
    assert_eq!(bursts(&one_message(10, true)), [5, 5]);
    assert_eq!(bursts(&one_message(10, false)), [10]);
}

/// The application writes when the connection is open: into a first buffer that has room again as often as a part of it has left (`tcp_sendmsg_locked`).
#[test]
fn a_message_that_opens_its_connection_leaves_as_one_that_finds_it_open() {
    let [opening, open] = [true, false].map(|handshake| bursts(&one_message_over(handshake, 100, true)));
    assert_eq!(opening, open);
}

/// All was written before the connection was open: nothing is out when the first message is pushed, and when the second is the host holds the first's
/// segment of 1448 + 960 bytes of memory, more than its own 1000 + 960 (`tcp_should_autocork`). 1448 + 552 = 2000. Nagle's rule would hold it, too.
#[test]
fn a_short_buffer_waits_for_the_next_message_while_the_host_holds_more_than_it() {
    let mut spec = star(1, Rate::gbps(1), Duration::us(50), None, None);
    let stack = Stack { tso: true, nagle: Nagle::Off, send_jitter: Duration::ZERO, ..Stack::linux() };
    let t = transport(&mut spec, "reno", stack);
    let f = flow(&mut spec, 0, t);
    for _ in 0..3 {
        message(&mut spec, f, 1000, Duration::ZERO);
    }
    spec.trace.packets = vec![LinkId(2)];
    let r = run(&spec);
    let p = &r.traces.packets;
    let sent = (0..p.seq.len()).filter(|&i| p.event[i] == 0 && p.payload[i] > 0);
    assert_eq!(sent.map(|i| p.payload[i]).collect::<Vec<_>>(), [1000, 1448, 552]);
}

/// Slow start at a round trip far below half a millisecond: as ACKs come back, bursts are as long as the window lets them be.
#[test]
fn bursts_grow_with_the_window() {
    let found = bursts(&one_message(400, true));
    // A burst may end where the receiver's window does, within a segment (`tcp_mss_split_point`).
    assert!((400..405).contains(&found.iter().sum::<u64>()), "{found:?}");
    assert!(found.iter().all(|&n| n <= 45), "{found:?}");
    assert!(found.iter().max() > Some(&10), "{found:?}");
    assert!(found.len() < 100, "{found:?}");
}

/// Bursts of a long flow over two links of this rate and delay, from a host whose card moderates interrupts.
fn long_flow(cc: &str, rate: Rate, delay: Duration, segments: u64) -> Vec<u64> {
    let mut spec = star(1, rate, delay, Some(QueueLimit::Packets(1000)), None);
    spec.hosts = HostModel {
        tso: true,
        gro: true,
        interrupt_delay: Duration::us(8),
        interrupt_frames: 128,
        ..HostModel::ideal()
    };
    let stack = Stack { tso: true, send_jitter: Duration::ZERO, clock_error_ppm: 0.0, ..Stack::linux() };
    let t = transport(&mut spec, cc, stack);
    let f = flow(&mut spec, 0, t);
    message(&mut spec, f, segments * MSS, Duration::ZERO);
    spec.trace.packets = vec![LinkId(2)];
    bursts(&run(&spec))
}

/// A burst is as long as the window and the host's queue let it be, and as the buffers are that the application wrote. As Linux 6.12 sends it in
/// virtual time.
#[test]
fn a_long_flow_leaves_in_the_bursts_of_linux() {
    let found = long_flow("reno", Rate::mbps(100), Duration::us(25), 1000);
    assert_eq!(found[..16], [5, 5, 4, 6, 6, 6, 10, 14, 14, 22, 28, 36, 45, 45, 45, 45]);
}

/// The twelfth burst would end 840 bytes into its 21st segment, where the receiver's window ends. A short segment is on its way, the end of the
/// eleventh: it ends after 20 (`tcp_nagle_check` in `tcp_mss_split_point`). As Linux 6.12 sends it in virtual time.
#[test]
fn a_burst_that_the_window_cuts_ends_with_no_second_short_segment() {
    let found = long_flow("bbr", Rate::gbps(1), Duration::us(25), 1000);
    assert_eq!(found[..16], [5, 5, 4, 6, 6, 6, 10, 14, 16, 4, 17, 20, 7, 8, 24, 26]);
}

/// Polls bring several segments, each of which is acknowledged before the application reads: the tenth burst ends where the window that was told
/// meanwhile does (after 42,000 bytes). As Linux 6.12 sends it in virtual time.
#[test]
fn acks_of_a_poll_tell_the_window_before_the_application_reads() {
    let found = long_flow("reno", Rate::gbps(10), Duration::us(25), 3000);
    assert_eq!(found[..16], [5, 5, 7, 10, 3, 13, 15, 12, 26, 30, 14, 10, 14, 28, 42, 30]);
}

/// BBR paces single segments through a shallow buffer; a burst of 45 it cannot hold.
#[test]
fn bursts_that_bbr_paces_overflow_a_shallow_buffer() {
    let drops = |tso| {
        let mut spec = star(4, Rate::gbps(1), Duration::us(5), Some(QueueLimit::Packets(30)), None);
        fast_access(&mut spec, Rate::gbps(10));
        let t = transport(&mut spec, "bbr", Stack { tso, ..Stack::linux() });
        for i in 0..4 {
            let f = flow(&mut spec, i, t);
            message(&mut spec, f, 500_000, Duration::us(10 * u64::from(i)));
        }
        let r = run(&spec);
        assert!(r.messages.iter().all(|m| m.done_ps.is_some()));
        r.ports.iter().map(|p| p.drops).sum::<u64>()
    };
    let (packets, bursts) = (drops(false), drops(true));
    assert!(bursts > packets * 3 / 2, "{packets} packets lost without offload, {bursts} with");
}

/// Two segments of 1500 bytes fit into a token bucket's 3200, so that tbf does not cut them: a namespace's or container's switch counts one packet.
#[test]
fn a_burst_that_no_card_cuts_is_one_packet_and_gets_one_ack() {
    let of = |tso_whole: u64| {
        let mut spec = star(1, Rate::gbps(1), Duration::us(50), None, None);
        let tso_whole = Bytes::new(tso_whole);
        let stack = Stack { tso: true, tso_whole, initial_quickacks: 0, initial_window: 4.0, ..Stack::linux() };
        let t = transport(&mut spec, "reno", Stack { send_jitter: Duration::ZERO, handshake: false, ..stack });
        let f = flow(&mut spec, 0, t);
        message(&mut spec, f, 4 * MSS, Duration::ZERO);
        spec.trace.packets = vec![LinkId(1), LinkId(0)];
        let r = run(&spec);
        let p = &r.traces.packets;
        let on = |link| (0..p.seq.len()).filter(move |&i| p.event[i] == 0 && p.link[i] == link);
        (on(1).map(|i| u64::from(p.payload[i]) / MSS).collect::<Vec<_>>(), on(0).count(), r.flows.row(0).segments)
    };
    let (whole, acks, segments) = of(3200);
    assert_eq!((whole, acks, segments), (vec![2, 2], 2, 4));
    assert_eq!(of(2999).0, [1, 1, 1, 1]);
}

/// In exact rhythm the short last packet of an answer comes before a full queue has sent one more, is lost whatever becomes of the others, and
/// only a timer tells (the phase effect of Floyd and Jacobson 1991).
#[test]
fn a_token_bucket_s_late_timer_spares_the_short_last_packets_of_answers() {
    let waited = |bucket_latency: Duration| {
        let mut spec = star(10, Rate::mbps(300), Duration::us(5), Some(QueueLimit::Packets(50)), None);
        let stack = Stack { tso: true, tso_whole: Bytes::new(3200), bucket_latency, ..Stack::linux() };
        let t = transport(&mut spec, "bbr", stack);
        let flows: Vec<_> = (0..10).map(|host| flow(&mut spec, host, t)).collect();
        for round in 0..20 {
            for &f in &flows {
                message(&mut spec, f, 32_768, Duration::ms(400 * round));
            }
        }
        let messages = run(&spec).messages;
        messages.iter().filter(|m| m.done_ps.unwrap() - m.release_ps.unwrap() > Duration::ms(100).ps()).count()
    };
    let (exact, late) = (waited(Duration::ZERO), waited(Duration::us(5)));
    assert!(exact > 2 * late, "{exact} answers waited in exact rhythm, {late} where timers are late");
}
