//! A connection whose sequence numbers come around: more than 4 GB one way.

use crate::connections::Script;
use fanin_capture::write::Flags;

/// As long as an IP packet may be, so that few packets make 4 GB.
const SIZE: u32 = 60_000;
const MANY: u64 = (1 << 32) / SIZE as u64 + 1_000;

#[test]
fn an_answer_of_more_than_4_gb_is_one_message_of_all_its_bytes() {
    let mut s = Script::new();
    let isn = u32::MAX - 70_000;
    let at = |n: u64| isn.wrapping_add(1).wrapping_add((n * u64::from(SIZE)) as u32);
    s.up(0, 0, 0, 0, Flags::SYN).down(20, isn, 1, 0, Flags::SYN | Flags::ACK).up(30, 1, at(0), 0, Flags::ACK);
    s.up(100, 1, at(0), 100, Flags::ACK | Flags::PSH);
    for n in 0..MANY {
        // Every thousandth is lost behind the tap and comes again.
        let us = 200 + 50 * n;
        s.down(us, at(n), 101, SIZE, Flags::ACK);
        if n % 1_000 == 999 {
            s.down(us + 10, at(n), 101, SIZE, Flags::ACK);
        }
        s.up(us + 40, 101, at(n + 1), 0, Flags::ACK);
    }
    let a = s.analyse();
    let connection = a.connections.get(0).unwrap();
    assert_eq!(a.connections.len(), 1);
    let down = &connection.to_client;
    let again = MANY / 1_000;
    assert_eq!(down.payload_bytes, (MANY + again) * u64::from(SIZE));
    assert_eq!(down.missing_bytes, 0);
    assert_eq!(down.retransmitted_bytes, again * u64::from(SIZE));
    let sizes: Vec<u64> = a.turns.iter().map(|t| t.response_bytes).collect();
    assert_eq!(sizes, [MANY * u64::from(SIZE)]);
}
