//! The receivers' programs of `kernel/receiver` beside the algorithms of crates/cc: the same arrivals through both, windows compared.
//!
//! The arrivals are those of a closed loop: so many connections over one link, each with as much in flight as fanin's window allows, with
//! pauses of the application. `FANIN_LOCKSTEP=1000000 cargo test -p fanin-host --release` sends a million packets.
#![allow(unsafe_code, clippy::unwrap_used)]

use fanin_cc::{Args, Arrival, PathKnowledge, Setup, registry};
use fanin_units::{Bytes, Duration, Rate, Time};
use rand::{RngExt, SeedableRng};
use std::collections::BinaryHeap;
use std::path::Path;
use std::process::Command;

const MSS: u32 = 1448;
const WIRE: u32 = 1538;
/// Nanoseconds of a full packet at 1 Gbps.
const PACKET_NS: u64 = 12_304;
const BASE_NS: u64 = 200_000;

type Open = unsafe extern "C" fn(u32, u64, u64);
type Data = unsafe extern "C" fn(u32, u64, u32, u32, u64) -> u64;

/// The C file as a shared object, for a test of its own: the state in it is one host's.
fn compiled(name: &str, test: &str) -> libloading::Library {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../kernel/receiver/{name}.c"));
    let object = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{test}.so"));
    let done = Command::new(std::env::var("CC").unwrap_or_else(|_| "cc".to_owned()))
        .args(["-std=gnu11", "-O2", "-fPIC", "-shared", "-o"])
        .arg(&object)
        .arg(&source)
        .status()
        .unwrap();
    assert!(done.success(), "the compiler refuses {}", source.display());
    // SAFETY: the object has no initialisers.
    unsafe { libloading::Library::new(object).unwrap() }
}

fn packets() -> usize {
    std::env::var("FANIN_LOCKSTEP").ok().and_then(|n| n.parse().ok()).unwrap_or(40_000)
}

/// How the windows of both compare over a trace.
struct Apart {
    /// The largest distance, packets.
    worst: f64,
    /// Mean window of the C file by that of ours.
    mean: f64,
}

/// `samples`: the share of packets that measure a round trip.
fn apart(name: &str, connections: u32, pauses: f64, samples: f64) -> Apart {
    let library = compiled(name, &format!("{connections}-{samples}"));
    // SAFETY: the types are those of kernel/receiver/attach.h.
    let (open, data) =
        unsafe { (library.get::<Open>(b"receiver_open").unwrap(), library.get::<Data>(b"receiver_data").unwrap()) };
    let path = PathKnowledge { rate: Rate::gbps(1), base_rtt: Duration::ns(BASE_NS), buffer_packets: 1e9 };
    let setup = Setup { mss: MSS, wire: Bytes::new(u64::from(WIRE)), path: Some(path), ..Setup::default() };
    let mut ours = registry::build_receiver(name, &setup, &Args::default()).unwrap().unwrap();
    let mut rng = rand_pcg::Pcg64::seed_from_u64(u64::from(connections));
    let at = |ns: u64| Time::ZERO + Duration::ns(ns);
    let base = Duration::ns(BASE_NS);
    // Time, connection, and when the ACK left that asked for it; earliest first.
    let mut arriving: BinaryHeap<std::cmp::Reverse<(u64, u32, u64)>> = BinaryHeap::new();
    let (mut free_at, start) = (0, 1_000_000_000);
    let mut in_flight = vec![0u64; connections as usize];
    for conn in 0..connections {
        let now = start + u64::from(conn) * 1_000;
        ours.on_open(at(now), conn, base, 0.0);
        // SAFETY: fewer connections than the object has room for.
        unsafe { open(conn, now, BASE_NS) };
        free_at = free_at.max(now + BASE_NS) + PACKET_NS;
        arriving.push(std::cmp::Reverse((free_at, conn, now)));
        in_flight[conn as usize] = 1;
    }
    let (mut worst, mut sums) = (0.0_f64, [0.0; 2]);
    for _ in 0..packets() {
        let std::cmp::Reverse((now, conn, asked)) = arriving.pop().unwrap();
        let sample = rng.random_bool(samples).then(|| now - asked);
        let arrival = Arrival {
            now: at(now),
            conn,
            mss: MSS,
            wire_bytes: WIRE,
            payload_bytes: MSS,
            rtt: sample.map(Duration::ns),
        };
        let window = ours.on_data(&arrival).window;
        // SAFETY: as above.
        let theirs = unsafe { data(conn, now, WIRE, MSS, sample.unwrap_or(0)) };
        let distance = window.abs_diff(theirs) as f64 / f64::from(MSS);
        worst = worst.max(distance);
        sums[0] += window as f64;
        sums[1] += theirs as f64;
        let in_flight = &mut in_flight[conn as usize];
        *in_flight -= 1;
        let pause = if rng.random_bool(pauses) { rng.random_range(0..2_000_000) } else { 0 };
        while *in_flight < (window / u64::from(MSS)).max(1) {
            let ready = now + pause + BASE_NS;
            free_at = free_at.max(ready) + PACKET_NS;
            arriving.push(std::cmp::Reverse((free_at, conn, now + pause)));
            *in_flight += 1;
        }
    }
    let mean = sums[1] / sums[0];
    println!(
        "{name}, {connections} connections: at most {worst:.1} packets apart, the mean window {mean:.3} times ours"
    );
    Apart { worst, mean }
}

#[test]
fn iatcp_gives_the_same_windows() {
    for connections in [1, 3, 8, 20, 64] {
        let Apart { worst, .. } = apart("iatcp", connections, 0.0, 0.3);
        assert!(worst <= f64::EPSILON, "{connections} connections: {worst} packets apart");
    }
}

/// A decision falls on the two sides of an edge (a quota, a threshold) so rarely that no packet of this trace sees one.
#[test]
fn ictcp_gives_the_same_windows_while_round_trips_do_not_change() {
    for connections in [1, 3, 8, 20] {
        let Apart { worst, mean } = apart("ictcp", connections, 0.0005, 0.0);
        assert!(worst <= f64::EPSILON || packets() > 40_000, "{connections} connections: {worst} packets apart");
        assert!((0.99..1.01).contains(&mean), "{connections} connections: the mean window is {mean} times ours");
    }
}

/// The bound: times of the C file have 1/256 ns, so once in many thousand packets one falls on the other side of the end of an interval or of
/// a slot's half; a decision is then made a packet later, and all that follow come at other times.
#[test]
fn ictcp_gives_the_same_mean_window_where_round_trips_are_measured() {
    for connections in [1, 3, 8, 20] {
        let Apart { worst, mean } = apart("ictcp", connections, 0.0005, 0.3);
        assert!(worst <= 4.0, "{connections} connections: {worst} packets apart");
        assert!((0.98..1.02).contains(&mean), "{connections} connections: the mean window is {mean} times ours");
    }
}
