//! Requests in flight together, told apart by the ends of writes (PSH), in conversations written by hand.

use crate::connections::Script;
use fanin_capture::WriteCounts;
use fanin_capture::write::Flags;

const ACK: Flags = Flags::ACK;
/// What the hosts of a script carry in a full segment: it offers no MSS, so the largest that was seen.
const FULL: u32 = 1000;

fn push() -> Flags {
    ACK | Flags::PSH
}

/// A client that asks with 100 bytes, and its server, both on one connection.
struct Talk {
    script: Script,
    asked: u32,
    answered: u32,
    now: u64,
    /// The server sets PSH on every segment.
    always: bool,
}

impl Talk {
    fn new() -> Talk {
        let mut script = Script::new();
        script.open(0);
        Talk { script, asked: 1, answered: 1, now: 1_000, always: false }
    }

    /// A request of so many bytes, after a pause.
    fn ask(&mut self, pause_us: u64, bytes: u32) -> &mut Talk {
        self.now += pause_us;
        // The client has everything that came up to now.
        self.script.up(self.now, self.asked, self.answered, bytes, push());
        self.asked += bytes;
        self
    }

    /// The same, sent before the client has the last `unread` bytes.
    fn ask_early(&mut self, pause_us: u64, bytes: u32, unread: u32) -> &mut Talk {
        self.now += pause_us;
        self.script.up(self.now, self.asked, self.answered - unread, bytes, push());
        self.asked += bytes;
        self
    }

    /// So many bytes from the server, 10 us apart, the last with `last`.
    fn answer(&mut self, bytes: u32, last: Flags) -> &mut Talk {
        let mut left = bytes;
        while left > 0 {
            self.now += 10;
            let now = left.min(FULL);
            left -= now;
            let flags = if left == 0 { last } else { ACK };
            let flags = if self.always { push() } else { flags };
            self.script.down(self.now, self.answered, self.asked, now, flags);
            self.answered += now;
        }
        self
    }

    /// Requests of other sizes that are answered alone: they show that PSH ends messages here.
    fn plain(&mut self) -> &mut Talk {
        for bytes in [2_300, 1_700, 4_100, 900] {
            self.ask(10_000, 100).answer(bytes, push());
        }
        self
    }

    /// Each request but the first is sent into the answer before.
    fn go_behind(&mut self, answers: &[u32]) -> &mut Talk {
        self.ask(10_000, 100);
        for bytes in answers {
            self.answer(1_000, ACK).ask(1_000, 100).answer(bytes - 1_000, push());
        }
        self
    }

    /// Start in us, request, answer, and whether it overlapped, of each message after the first `skip`; how often what was found.
    fn messages(&mut self, skip: usize) -> (Vec<(u64, u64, u64, bool)>, WriteCounts) {
        let found = self.script.analyse();
        let workload = found.workload(None).unwrap();
        let all = workload.connections[0].messages.iter();
        let rows = all.map(|m| (m.start_ns / 1_000, m.request_bytes, m.response_bytes, m.overlapped)).skip(skip);
        (rows.collect(), found.connections.get(0).unwrap().writes)
    }
}

#[test]
fn requests_sent_before_any_answer_are_told_apart_by_the_ends_of_their_answers() {
    let mut talk = Talk::new();
    talk.plain();
    let at = talk.now;
    // Three requests of other sizes, 5 ms apart; then their answers, one behind the other.
    talk.ask(5_000, 100).ask(5_000, 80).ask(5_000, 120);
    talk.answer(3_500, push()).answer(700, push()).answer(12_300, push());
    let (found, counts) = talk.ask(20_000, 100).answer(500, push()).messages(4);
    let expected = [(at + 5_000, 100, 3_500, false), (at + 10_000, 80, 700, true), (at + 15_000, 120, 12_300, true)];
    assert_eq!(found[..3], expected);
    assert_eq!((found.len(), counts), (4, WriteCounts { shown: 5, apart: 1, odd: 0, several: 0, unasked: 1 }));
}

#[test]
fn a_request_sent_into_an_answer_does_not_cut_it() {
    let mut talk = Talk::new();
    talk.plain();
    let at = talk.now;
    // The second request leaves when the client has the first 2000 of 4200 bytes.
    talk.ask(5_000, 100).answer(2_000, ACK).ask(3_000, 90).answer(2_200, push()).answer(600, push());
    let (found, _) = talk.ask(20_000, 100).answer(500, push()).messages(4);
    // It acknowledges all that passed the tap: only the end that is not there yet shows that the answer went on.
    assert_eq!(found[..2], [(at + 5_000, 100, 4_200, false), (at + 8_020, 90, 600, true)]);

    // The same where the acknowledgement shows it.
    let mut talk = Talk::new();
    talk.plain();
    let at = talk.now;
    talk.ask(5_000, 100).answer(2_000, ACK).ask_early(3_000, 90, 1_000).answer(2_200, push()).answer(600, push());
    let (found, _) = talk.ask(20_000, 100).answer(500, push()).messages(4);
    assert_eq!(found[..2], [(at + 5_000, 100, 4_200, false), (at + 8_020, 90, 600, true)]);
}

#[test]
fn a_host_that_sets_psh_on_every_segment_shows_nothing_on_full_ones() {
    let mut talk = Talk::new();
    talk.always = true;
    talk.plain();
    let at = talk.now;
    talk.ask(5_000, 100).ask(5_000, 100).answer(2_300, push()).answer(4_100, push());
    let (found, counts) = talk.ask(20_000, 100).answer(500, push()).messages(4);
    // Short segments end answers still.
    assert_eq!(found[..2], [(at + 5_000, 100, 2_300, false), (at + 10_000, 100, 4_100, true)]);
    assert_eq!(counts, WriteCounts { shown: 5, apart: 1, odd: 0, several: 0, unasked: 1 });
}

#[test]
fn an_upload_and_an_answer_that_offload_cuts_are_a_message_each() {
    let mut talk = Talk::new();
    for _ in 0..4 {
        // Each leaves in two bursts, whose ends have PSH.
        talk.ask(10_000, FULL).ask(200, 780).answer(20, push());
        talk.ask(5_000, 100).answer(2 * FULL, push()).answer(700, push());
    }
    let (found, _) = talk.messages(0);
    let sizes: Vec<(u64, u64)> = found.iter().map(|&(_, asked, answered, _)| (asked, answered)).collect();
    assert_eq!(sizes, [(1_780, 20), (100, 2_700)].repeat(4));
}

/// Three requests at a time, whose answers have as many ends in two of four times: in the others two answers are in one segment.
#[test]
fn several_requests_under_way_whose_ends_do_not_fit_are_warned_of() {
    let mut talk = Talk::new();
    talk.plain();
    for n in 0..20 {
        talk.ask(10_000, 100).ask(1_000, 80).ask(1_000, 120).answer(700, push());
        if n % 4 < 2 {
            talk.answer(300, push()).answer(500, push())
        } else {
            talk.answer(800, push())
        };
    }
    let unread = |talk: &mut Talk| talk.script.analyse().warnings.iter().any(|w| w.kind() == "messages-unread");
    assert!(unread(&mut talk) && !unread(Talk::new().plain()));
}

#[test]
fn nothing_is_told_apart_where_psh_is_not_informative() {
    // Answers in two writes, a head and a body: twice as many ends as requests.
    let mut talk = Talk::new();
    for bytes in [2_300, 1_700, 4_100, 900] {
        talk.ask(10_000, 100).answer(150, push()).answer(bytes, push());
    }
    talk.ask(5_000, 100)
        .ask(5_000, 100)
        .answer(150, push())
        .answer(800, push())
        .answer(150, push())
        .answer(450, push());
    let (found, counts) = talk.ask(20_000, 100).answer(500, push()).messages(4);
    assert_eq!((found.len(), found[0].1, found[0].2), (2, 200, 1_550));
    assert_eq!((counts.shown, counts.apart, counts.odd), (1, 0, 5));

    // No ends at all: a capture without PSH.
    let mut talk = Talk::new();
    for bytes in [2_300, 1_700, 4_100] {
        talk.ask(10_000, 100).answer(bytes, ACK);
    }
    talk.ask(5_000, 100).ask(5_000, 100).answer(950, ACK);
    let (found, _) = talk.ask(20_000, 100).answer(500, ACK).messages(3);
    assert_eq!((found.len(), found[0].1, found[0].2), (2, 200, 950));

    // Too few that were answered alone to know.
    let mut talk = Talk::new();
    talk.ask(5_000, 100).ask(5_000, 100).answer(800, push()).answer(450, push());
    let (found, counts) = talk.ask(20_000, 100).answer(500, push()).messages(0);
    assert_eq!((found.len(), counts.apart, counts.shown), (2, 1, 1));
}

#[test]
fn a_request_in_two_writes_is_one() {
    let mut talk = Talk::new();
    talk.plain();
    let at = talk.now;
    // Head and body 10 us apart, less than a round trip, and an answer in two writes.
    talk.ask(5_000, 200).ask(10, 3_000).answer(150, push()).answer(1_500, push());
    let (found, _) = talk.ask(20_000, 100).answer(500, push()).messages(4);
    assert_eq!(found[0], (at + 5_000, 3_200, 1_650, false));
}

/// Requests of a server that is always behind: each is sent into the answer before.
fn behind(answers: &[u32]) -> Talk {
    let mut talk = Talk::new();
    talk.go_behind(answers);
    talk
}

#[test]
fn many_requests_that_were_never_answered_alone_show_their_ends_themselves() {
    let answers = [3_500, 1_700, 12_300, 2_300, 1_900, 4_100, 1_650, 1_250];
    let at = Talk::new().now + 10_000;
    let mut talk = behind(&answers);
    talk.answer(500, push());
    let (found, counts) = talk.messages(0);
    let sizes: Vec<u64> = found.iter().map(|m| m.2).collect();
    assert_eq!(sizes, [3_500, 1_700, 12_300, 2_300, 1_900, 4_100, 1_650, 1_250, 500]);
    assert_eq!((found[0].0, found[1].0, counts.shown), (at, at + 1_010, 9));
    // Eight are many, and seven are not.
    let shown = |fewer: usize| behind(&answers[fewer..]).answer(500, push()).messages(0).1.shown;
    assert_eq!((shown(1), shown(2)), (8, 0));
}

#[test]
fn two_requests_that_leave_together_among_many_are_two_if_there_are_answers_to_both() {
    let answers = [3_500, 1_700, 12_300, 2_300, 1_900, 4_100];
    let sizes = |answers: &[u32]| {
        let mut talk = Talk::new();
        talk.plain().go_behind(answers);
        // 5 us apart, less than a round trip.
        talk.answer(1_000, ACK).ask(1_000, 100).ask(5, 100);
        talk.answer(650, push()).answer(1_250, push()).answer(500, push());
        talk.messages(4).0.iter().map(|m| m.2).collect::<Vec<u64>>()
    };
    assert_eq!(sizes(&answers), [3_500, 1_700, 12_300, 2_300, 1_900, 4_100, 1_650, 1_250, 500]);
    // One of five is rare, and one of four is not.
    assert_eq!(sizes(&answers[..3]), [3_500, 1_700, 12_300, 1_650, 1_250, 500]);
    assert!(sizes(&answers[..2]).len() < 5);
}

#[test]
fn a_connection_that_asks_once_for_each_answer_is_not_read_with_the_answers_of_others() {
    let mut talk = Talk::new();
    talk.plain();
    // A request in two parts that are far apart, or an end that the tap did not see: one request too many.
    talk.ask(5_000, 40).ask(5_000, 60).answer(1_200, push());
    for bytes in [1_700, 4_100, 650, 900, 2_300, 3_100, 800, 1_900] {
        talk.ask(3_000, 100).answer(bytes, push());
    }
    // An answer in two writes would make the sums right.
    talk.ask(3_000, 100).answer(150, push()).answer(2_750, push());
    let (found, _) = talk.ask(20_000, 100).answer(500, push()).messages(4);
    let sizes: Vec<u64> = found.iter().map(|m| m.2).collect();
    assert_eq!(sizes, [1_200, 1_700, 4_100, 650, 900, 2_300, 3_100, 800, 1_900, 2_900, 500]);
}

/// One answer of which two ends show: a head and a body.
fn odd(talk: &mut Talk) {
    talk.ask(10_000, 100).answer(150, push()).answer(1_300, push());
}

#[test]
fn psh_tells_messages_apart_where_it_is_seldom_something_else() {
    let in_flight = |shown: usize| {
        let mut talk = Talk::new();
        (0..shown).for_each(|_| {
            talk.plain();
        });
        odd(&mut talk);
        talk.ask(5_000, 100).ask(5_000, 80).answer(3_500, push()).answer(700, push());
        let (found, counts) = talk.ask(20_000, 100).answer(500, push()).messages(4 * shown + 1);
        assert_eq!((counts.odd, counts.apart), (1, 1));
        found.len()
    };
    // One of seven cases is odd; then one of 27.
    assert_eq!(in_flight(1), 2);
    assert_eq!(in_flight(6), 3);
}

#[test]
fn requests_that_wait_for_a_slow_server_are_told_apart_and_endless_ones_are_not() {
    let waiting = |count: u32| {
        let mut talk = Talk::new();
        talk.plain();
        (0..count).for_each(|_| {
            talk.ask(5_000, 100);
        });
        (0..count).for_each(|n| {
            talk.answer(500 + 10 * n, push());
        });
        talk.ask(20_000, 100).answer(500, push()).messages(4).0.len()
    };
    assert_eq!((waiting(20), waiting(64)), (21, 65));
    // Answers whose ends never come are not waited for for ever.
    assert_eq!(waiting(65), 2);
}

#[test]
fn a_stretch_that_never_ends_is_not_kept_for_ever() {
    let apart = |requests: u32| {
        let mut talk = Talk::new();
        talk.plain();
        talk.ask(10_000, 100);
        for n in 1..requests {
            talk.answer(1_000, ACK).ask(1_000, 100).answer(200 + n % 7, push());
        }
        talk.answer(500, push());
        talk.ask(20_000, 100).answer(500, push()).messages(4).1.apart
    };
    assert_eq!(apart(1_024), 1);
    assert_eq!(apart(1_025), 0, "it is given up, and what follows lacks its beginning");
}

#[test]
fn requests_further_apart_than_one_write_takes_are_two_however_long_the_path() {
    let asked = |apart: u64| {
        let mut talk = Talk::new();
        // A millisecond to the server and back.
        talk.script = Script::new();
        talk.script.up(0, 0, 0, 0, Flags::SYN).down(1_000, 0, 1, 0, Flags::SYN | ACK).up(1_010, 1, 1, 0, ACK);
        talk.now = 2_000;
        talk.plain();
        let at = talk.now;
        talk.ask(5_000, 100).ask(apart, 80).answer(3_500, push()).answer(700, push());
        let (found, _) = talk.ask(20_000, 100).answer(500, push()).messages(4);
        found[..2].iter().map(|m| (m.0 - at, m.1, m.2, m.3)).collect::<Vec<_>>()
    };
    assert_eq!(asked(51), [(5_000, 100, 3_500, false), (5_051, 80, 700, true)]);
    assert_eq!(asked(50)[0], (5_000, 180, 4_200, false));
}

#[test]
fn what_nothing_asked_for_is_counted_by_the_ends_of_its_writes() {
    let mut talk = Talk::new();
    for bytes in [3_500, 1_700, 12_300] {
        talk.answer(bytes, push());
    }
    let found = talk.script.analyse();
    let workload = found.workload(None).unwrap();
    // No pause is between them: one answer, of which three ends show.
    assert_eq!((workload.connections[0].messages.len(), workload.connections[0].unasked_writes), (1, 3));

    // A segment of fewer bytes than any host takes is not full, whatever was seen; one of 536 may be.
    for (bytes, ends) in [(268, 1), (536, 0)] {
        let mut talk = Talk::new();
        talk.answer(bytes, push()).ask(5_000, 100).answer(200, push());
        assert_eq!(talk.script.analyse().connections.get(0).unwrap().writes.unasked, ends, "{bytes}");
    }

    // A write that ends on a full segment may go on, and what follows a request was asked for.
    let mut talk = Talk::new();
    talk.answer(3_000, push()).answer(500, push()).ask(5_000, 100).answer(700, push());
    let found = talk.script.analyse();
    assert_eq!(found.connections.get(0).unwrap().writes.unasked, 1);
    assert_eq!(found.workload(None).unwrap().connections[0].unasked_writes, 0, "the aggregator did ask");
}
