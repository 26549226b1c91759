//! Which requests leave together: bursts in time, and the connections that are asked together again and again.

use super::{SEEN, Talk};

/// Requests further apart than this were not sent by one loop over the servers. Such a loop takes some microseconds per server, and tens
/// where each one wakes a thread; a think time shorter than this is told apart by the answers that come before it.
pub(crate) const TOGETHER: u64 = 500_000;
/// An application that only writes on needs less than this to do so.
pub(super) const AT_ONCE: u64 = 100_000;
/// An application that opens a connection to ask on it does so in less: a handshake, and that of TLS, and its own threads. Where most connections carry one
/// message, each was opened for its own, however long that took.
const OPENING: u64 = 5_000_000;
/// A connection belongs with others if more than this share of its requests leave in their company.
const COMPANY: f64 = 0.5;
/// So many neighbours in a burst are counted as company: enough to find the group, and what other users ask at the same time is rarely so near.
const NEIGHBOURS: usize = 2;

/// A request, in order of time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ask {
    /// When the application decided to ask: when it left, or when its connection was opened for it.
    pub at: u64,
    /// When it left.
    pub sent: u64,
    pub conn: u32,
    pub msg: u32,
    /// Who is asked.
    pub server: u32,
    /// When the response before on the same connection had arrived; none when there was none or it had not.
    pub own: Option<u64>,
    /// When its own response had arrived.
    pub answered: Option<u64>,
    /// By how much earlier that may have been.
    pub unsure: u64,
    /// It was sent before the response before had arrived.
    pub overlapped: bool,
    /// When the application gave up waiting for its answer. It is `answered` when it was tried anew, if it was.
    pub given_up: Option<u64>,
    /// The position of the request that was given up and that this one tries anew.
    pub retries: Option<u32>,
}

impl Ask {
    /// It follows the answer before on its connection as soon as a loop over the servers asks the next one.
    pub fn goes_on(&self) -> bool {
        self.own.is_some_and(|own| self.at - own <= TOGETHER)
    }

    /// It follows the answer before on its connection at once: the next message of a request that comes in several. Whether it leaves alone
    /// says nothing about the company of its connection.
    pub fn continues(&self) -> bool {
        self.own.is_some_and(|own| self.at - own <= AT_ONCE)
    }

    /// When the application waited for it no longer: it was answered, or given up.
    pub fn over(&self) -> Option<u64> {
        self.answered.or(self.given_up)
    }

    /// At least for how long it was not answered.
    pub fn took(&self) -> u64 {
        self.over().map_or(0, |over| over.saturating_sub(self.unsure).saturating_sub(self.at))
    }

    /// Its response had not arrived at a moment, as far as the tap can tell.
    pub fn is_missing(&self, at: u64) -> bool {
        self.answered.is_some_and(|answered| answered.saturating_sub(self.unsure) > at + SEEN)
    }
}

/// Requests that left together: positions of asks, in order of time.
#[derive(Clone, Debug)]
pub(super) struct Burst {
    pub asks: Vec<u32>,
}

/// Connections that are asked together, and their bursts in order of time.
#[derive(Clone, Debug)]
pub(super) struct Company {
    pub connections: Vec<u32>,
    pub bursts: Vec<Burst>,
    pub upstream: bool,
}

/// All requests in order of time.
pub(super) fn asks(talks: &[Talk]) -> Vec<Ask> {
    let mut all = Vec::new();
    let alone = |talk: &&Talk| talk.times.len() == 1;
    // Most connections carry one message: a connection is opened for each.
    // HTTP/1.0, `Connection: close`, a client without a pool: the SYN is the request. Timed by its first data it would
    // begin a handshake late, and messages of one fan-out whose handshakes differ would be apart.
    let each_opens = 2 * talks.iter().filter(alone).count() > talks.len();
    let ahead = opened_ahead(talks);
    for (conn, talk) in talks.iter().enumerate() {
        let opening = if each_opens && talk.times.len() == 1 { u64::MAX } else { OPENING };
        let mut before: Option<u64> = None;
        for (msg, times) in talk.times.iter().enumerate() {
            if let Some(sent) = times.asked {
                // What uses it later was not what it was opened for.
                let for_it = |&opened: &u64| msg == 0 && sent.saturating_sub(opened) <= opening;
                let opened = talk.opened.filter(for_it).filter(|_| opening > OPENING || !ahead[conn]);
                let at = opened.map_or(sent, |opened| opened.min(sent));
                // Unless it was sent while the answer was still coming, the answer had come, whatever the tap says.
                let own = before.filter(|&answered| answered <= at || !times.overlapped).map(|own| own.min(at));
                let (conn, msg) = (conn as u32, msg as u32);
                let (server, answered, overlapped) = (talk.server, times.answered, times.overlapped);
                let (retries, unsure, given_up) = (None, times.unsure, times.given_up);
                all.push(Ask { at, sent, conn, msg, server, own, answered, unsure, overlapped, given_up, retries });
            }
            before = times.answered.or(before);
        }
    }
    all.sort_unstable_by_key(|a| (a.at, a.conn, a.msg));
    retries(&mut all);
    all
}

/// Which connections an application had opened before it had anything to ask: several in a row, all of them before it asked on any, and the first of them
/// longer before that than an application takes that opens a connection to ask on it. What is opened in one row is opened for one purpose.
fn opened_ahead(talks: &[Talk]) -> Vec<bool> {
    let mut openings: Vec<(u64, u64, usize)> = Vec::new();
    for (conn, talk) in talks.iter().enumerate() {
        let asked = talk.times.iter().find_map(|times| times.asked);
        openings.extend(talk.opened.zip(asked).map(|(opened, asked)| (opened, asked, conn)));
    }
    openings.sort_unstable();
    let mut ahead = vec![false; talks.len()];
    for row in openings.chunk_by(|a, b| b.0 - a.0 <= OPENING) {
        let asked = row.iter().map(|&(_, asked, _)| asked).min().unwrap_or(0);
        let last = row.last().map_or(0, |&(opened, ..)| opened);
        // As a pool that is filled at the start (minimumIdle of HikariCP): its connections were opened for no request.
        if last <= asked && asked - row[0].0 > OPENING {
            row.iter().for_each(|&(_, _, conn)| ahead[conn] = true);
        }
    }
    ahead
}

/// Finds which requests try one anew that was given up: the next to its server, soon after that. Where others are asked with it that gave up nothing, it is
/// what the user asks next, unless it leaves at once.
fn retries(asks: &mut [Ask]) {
    let mut given_up: Vec<u32> = Vec::new();
    for n in 0..asks.len() {
        let ask = asks[n];
        let until = |&failed: &u32| asks[failed as usize].given_up.unwrap_or(u64::MAX);
        // Too long ago to be tried anew.
        given_up.retain(|failed| until(failed).saturating_add(OPENING) >= ask.at);
        let mine = |failed: &u32| asks[*failed as usize].server == ask.server && until(failed) <= ask.at + SEEN;
        let at_once = |failed: &u32| ask.at.saturating_sub(until(failed)) <= TOGETHER;
        let again = |failed: &u32| mine(failed) && (at_once(failed) || !leaves_with_others(asks, n, &given_up));
        if let Some(place) = given_up.iter().position(again) {
            let failed = given_up.remove(place);
            asks[n].retries = Some(failed);
            // Until then the application waited: what it asks next is of the same request.
            asks[failed as usize].answered = Some(ask.at + SEEN + 1);
        }
        if ask.given_up.is_some() {
            given_up.push(n as u32);
        }
    }
}

/// Another server is asked at the time of this message, and not because it was `given_up` there.
fn leaves_with_others(asks: &[Ask], n: usize, given_up: &[u32]) -> bool {
    let ask = asks[n];
    let retried = |server: u32| given_up.iter().any(|&failed| asks[failed as usize].server == server);
    let before = asks[..n].iter().rev().take_while(|other| ask.at - other.at <= TOGETHER);
    let behind = asks[n + 1..].iter().take_while(|other| other.at - ask.at <= TOGETHER);
    let mut others = before.chain(behind).filter(|other| other.server != ask.server && other.retries.is_none());
    others.any(|other| !retried(other.server))
}

/// Finds the companies.
pub(super) fn companies(talks: &[Talk], asks: &[Ask]) -> Vec<Company> {
    let bursts = in_time(talks, asks);
    let member = together(talks, asks, &bursts);
    // Companies in the order of their first connections.
    let mut number = vec![u32::MAX; talks.len()];
    let mut all: Vec<Company> = Vec::new();
    for conn in 0..talks.len() {
        let root = member[conn] as usize;
        if number[root] == u32::MAX {
            number[root] = all.len() as u32;
            all.push(Company { connections: Vec::new(), bursts: Vec::new(), upstream: talks[conn].upstream });
        }
        all[number[root] as usize].connections.push(conn as u32);
    }
    // A burst in which several companies met by chance is one burst of each.
    let mut open: Vec<Option<usize>> = vec![None; all.len()];
    for burst in &bursts {
        let mut met: Vec<u32> = Vec::new();
        for &ask in burst {
            let company = number[member[asks[ask as usize].conn as usize] as usize];
            let mine = &mut all[company as usize];
            let place = *open[company as usize].get_or_insert_with(|| {
                met.push(company);
                mine.bursts.push(Burst { asks: Vec::new() });
                mine.bursts.len() - 1
            });
            mine.bursts[place].asks.push(ask);
        }
        for company in met {
            open[company as usize] = None;
        }
    }
    for company in &mut all {
        company.join_stragglers(asks);
    }
    all
}

impl Company {
    /// Of messages of several connections, each connection alone.
    pub fn alone(mut messages: Vec<u32>, asks: &[Ask]) -> Vec<Company> {
        let conn = |n: u32| asks[n as usize].conn;
        messages.sort_unstable_by_key(|&n| (conn(n), n));
        let company = |mine: &[u32]| {
            let bursts = mine.iter().map(|&ask| Burst { asks: vec![ask] }).collect();
            Company { connections: vec![conn(mine[0])], bursts, upstream: false }
        };
        messages.chunk_by(|&a, &b| conn(a) == conn(b)).map(company).collect()
    }

    /// What is left of it; none: nothing.
    pub fn without(&self, taken: &[bool], asks: &[Ask]) -> Option<Company> {
        let free = |conn: u32| !taken[conn as usize];
        let connections: Vec<u32> = self.connections.iter().copied().filter(|&conn| free(conn)).collect();
        if connections.is_empty() || connections.len() == self.connections.len() {
            return Some(self.clone()).filter(|_| !connections.is_empty());
        }
        let bursts = self.bursts.iter().map(|burst| {
            let asks = burst.asks.iter().copied().filter(|&ask| free(asks[ask as usize].conn)).collect();
            Burst { asks }
        });
        Some(Company { connections, bursts: bursts.filter(|b| !b.asks.is_empty()).collect(), upstream: self.upstream })
    }

    /// A loop over the servers may have been interrupted: requests that leave while those before are unanswered, to servers that were not asked
    /// yet and had answered before, are of the same burst.
    fn join_stragglers(&mut self, asks: &[Ask]) {
        // Clients are each for himself.
        if self.connections.len() < 2 || self.upstream {
            return;
        }
        let mut joined: Vec<Burst> = Vec::with_capacity(self.bursts.len());
        for burst in self.bursts.drain(..) {
            let Some(last) = joined.last_mut() else {
                joined.push(burst);
                continue;
            };
            let start = asks[last.asks[0] as usize].at;
            let answered = last.asks.iter().map(|&a| asks[a as usize].answered.unwrap_or(u64::MAX)).max().unwrap_or(0);
            // Asked while answers are missing, on a connection that had its answer before the burst began.
            let new = |a: &Ask| {
                a.own.is_none_or(|own| own <= start + SEEN)
                    && a.at < answered
                    && last.asks.iter().all(|&b| asks[b as usize].conn != a.conn)
            };
            if burst.asks.len() < self.connections.len() && burst.asks.iter().all(|&a| new(&asks[a as usize])) {
                last.asks.extend(burst.asks);
            } else {
                joined.push(burst);
            }
        }
        self.bursts = joined;
    }
}

/// Bursts by time alone: a burst ends with a pause, when a connection comes again, and when an answer may have released the next request.
fn in_time(talks: &[Talk], asks: &[Ask]) -> Vec<Vec<u32>> {
    let mut bursts: Vec<Vec<u32>> = Vec::new();
    let mut seen_in = vec![u32::MAX; talks.len()];
    let (mut start, mut last, mut answered) = (0, 0, 0);
    for (n, ask) in asks.iter().enumerate() {
        // Soon after the message before, on another connection, and released by nothing that came since the burst began.
        // `seen_in` counts bursts from 1, so that the length is the number of the one that is open.
        let goes_on = !bursts.is_empty()
            && !talks[ask.conn as usize].upstream
            && ask.at - last <= TOGETHER
            && seen_in[ask.conn as usize] != bursts.len() as u32
            && ask.own.is_none_or(|own| own <= start + SEEN)
            && answered > ask.at;
        if goes_on {
            if let Some(burst) = bursts.last_mut() {
                burst.push(n as u32);
            }
            // While an answer of it is missing the burst goes on; when all have come, what leaves next may follow them.
            answered = answered.max(ask.answered.unwrap_or(u64::MAX));
        } else {
            bursts.push(vec![n as u32]);
            start = ask.at;
            // The answer of the aggregator to a client waits for nothing here, so nothing joins it.
            answered = if talks[ask.conn as usize].upstream { 0 } else { ask.answered.unwrap_or(u64::MAX) };
        }
        seen_in[ask.conn as usize] = bursts.len() as u32;
        last = ask.at;
    }
    bursts
}

/// The company of each connection, as the number of one of its connections.
fn together(talks: &[Talk], asks: &[Ask], bursts: &[Vec<u32>]) -> Vec<u32> {
    let mut pairs: Vec<(u32, u32)> = Vec::new();
    for burst in bursts {
        for (i, &a) in burst.iter().enumerate() {
            for &b in burst.iter().skip(i + 1).take(NEIGHBOURS) {
                let (a, b) = (asks[a as usize].conn, asks[b as usize].conn);
                // In either order a pair is one.
                pairs.push((a.min(b), a.max(b)));
            }
        }
    }
    let mut pairs = counted(pairs.into_iter().map(|pair| (pair, 1)).collect());
    // The clients of the aggregator are one company: each is a thread of its own, but they ask for the same things.
    let first_upstream = talks.iter().position(|t| t.upstream).unwrap_or(0) as u32;
    let mut member: Vec<u32> =
        (0..talks.len() as u32).map(|c| if talks[c as usize].upstream { first_upstream } else { c }).collect();
    // Each pass halves the companies at least, so there are few.
    loop {
        let (alone, in_company) = asked(bursts, asks, &member);
        let partner = partners(&pairs, talks.len());
        let mut root: Vec<u32> = (0..talks.len() as u32).collect();
        let mut changed = false;
        for c in 0..talks.len() as u32 {
            let (alone, in_company) = (f64::from(alone[c as usize]), f64::from(in_company[c as usize]));
            if let Some(other) = partner[c as usize]
                && in_company >= COMPANY * (alone + in_company)
            {
                let (a, b) = (find(&mut root, c), find(&mut root, other));
                if a != b {
                    root[a.max(b) as usize] = a.min(b);
                    changed = true;
                }
            }
        }
        if !changed {
            return member;
        }
        for m in &mut member {
            *m = find(&mut root, *m);
        }
        let joined = pairs.iter().map(|&((a, b), count)| {
            let (a, b) = (find(&mut root, a), find(&mut root, b));
            ((a.min(b), a.max(b)), count)
        });
        pairs = counted(joined.collect());
    }
}

/// In how many bursts each company asked alone, and in how many with others.
fn asked(bursts: &[Vec<u32>], asks: &[Ask], member: &[u32]) -> (Vec<u32>, Vec<u32>) {
    let (mut alone, mut in_company) = (vec![0_u32; member.len()], vec![0_u32; member.len()]);
    for burst in bursts {
        let company = |ask: &u32| member[asks[*ask as usize].conn as usize];
        let first = company(&burst[0]);
        let several = burst.iter().any(|ask| company(ask) != first);
        // What goes on with a request says nothing of who begins one.
        if !several && burst.iter().all(|&ask| asks[ask as usize].continues()) {
            continue;
        }
        let mut mine: Vec<u32> = burst.iter().map(company).collect();
        mine.sort_unstable();
        mine.dedup();
        for c in mine {
            *(if several { &mut in_company[c as usize] } else { &mut alone[c as usize] }) += 1;
        }
    }
    (alone, in_company)
}

/// With whom each of so many companies asked most often.
fn partners(pairs: &[((u32, u32), u32)], count: usize) -> Vec<Option<u32>> {
    let mut partner: Vec<Option<(u32, u32)>> = vec![None; count];
    for &((a, b), times) in pairs {
        for (me, other) in [(a, b), (b, a)] {
            let best = &mut partner[me as usize];
            if best.is_none_or(|(most, _)| times > most) {
                *best = Some((times, other));
            }
        }
    }
    partner.into_iter().map(|best| Some(best?.1)).collect()
}

/// The representative of a company.
pub(super) fn find(root: &mut [u32], mut c: u32) -> u32 {
    // Path halving (Tarjan and van Leeuwen 1984): each look makes the next one shorter.
    while root[c as usize] != c {
        root[c as usize] = root[root[c as usize] as usize];
        c = root[c as usize];
    }
    c
}

/// Sums the counts of equal pairs, in order; a pair of one with itself is none.
pub(super) fn counted(mut pairs: Vec<((u32, u32), u32)>) -> Vec<((u32, u32), u32)> {
    pairs.retain(|((a, b), _)| a != b);
    pairs.sort_unstable();
    pairs.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            kept.1 += next.1;
        }
        same
    });
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::release::Times;

    fn talk(server: u32, opened: Option<u64>, asked: u64) -> Talk {
        let times = vec![Times { asked: Some(asked), ..Times::default() }];
        Talk { server, opened, times, ..Talk::default() }
    }

    #[test]
    fn a_loop_over_the_servers_takes_500_us_from_one_to_the_next() {
        let bursts = |apart: u64| {
            let talks = [talk(0, None, 1_000), talk(1, None, 1_000 + apart)];
            in_time(&talks, &asks(&talks)).len()
        };
        assert_eq!((bursts(500_000), bursts(500_001)), (1, 2));
    }

    /// The first is answered after 200 us.
    #[test]
    fn what_is_asked_when_the_last_answer_has_come_may_follow_it() {
        let bursts = |apart: u64| {
            let mut talks = [talk(0, None, 1_000), talk(1, None, 1_000 + apart)];
            talks[0].times[0].answered = Some(201_000);
            in_time(&talks, &asks(&talks)).len()
        };
        assert_eq!([199_999, 200_000, 200_001].map(bursts), [1, 2, 2]);
    }

    #[test]
    fn an_application_asks_within_5_ms_on_what_it_opened_for_that() {
        let decided = |asked: u64, messages: usize| {
            let mut talk = talk(0, Some(1_000), 1_000 + asked);
            talk.times.resize(messages, Times::default());
            asks(&[talk])[0].at
        };
        assert_eq!((decided(5_000_000, 2), decided(5_000_001, 2)), (1_000, 5_001_001));
        assert_eq!(decided(5_000_001, 1), 1_000, "a connection of one message was opened for that");
    }

    /// Six connections that are opened so many microseconds after each other, and asked together 1 ms after the last opening: how long before it was sent the
    /// application decided to ask the last.
    #[test]
    fn connections_that_are_opened_in_one_row_are_opened_for_one_purpose() {
        let decided_before = |apart: u64, asked_early: bool| {
            let asked = 5 * apart + 1_000;
            let of = |n: u64| if asked_early && n == 0 { apart } else { asked };
            let mut talks: Vec<Talk> = (0..6).map(|n| talk(n as u32, Some(n * apart * 1_000), of(n) * 1_000)).collect();
            // They are asked again.
            talks.iter_mut().for_each(|talk| talk.times.resize(2, Times::default()));
            let last = asks(&talks).into_iter().find(|ask| ask.conn == 5).unwrap();
            last.sent - last.at
        };
        assert_eq!((decided_before(800, false), decided_before(801, false)), (1_000_000, 0));
        assert_eq!(decided_before(801, true), 1_000_000, "it asks on the first before it has opened the others");
    }

    #[test]
    fn an_application_goes_on_writing_within_100_us_of_an_answer() {
        let continues = |after: u64| {
            let mut talk = talk(0, None, 1_000);
            talk.times[0].answered = Some(2_000);
            talk.times.push(Times { asked: Some(2_000 + after), ..Times::default() });
            asks(&[talk])[1].continues()
        };
        assert_eq!((continues(100_000), continues(100_001)), (true, false));
    }

    /// Bursts that ask these connections, once each, as often as it is said; the company of each connection.
    fn company(bursts: &[(u32, Vec<u32>)], connections: usize) -> Vec<u32> {
        let talks = vec![Talk::default(); connections];
        let (mut asks, mut all) = (Vec::new(), Vec::new());
        for (times, conns) in bursts {
            for _ in 0..*times {
                all.push((asks.len() as u32..(asks.len() + conns.len()) as u32).collect::<Vec<u32>>());
                asks.extend(conns.iter().map(|&conn| Ask { conn, ..Ask::default() }));
            }
        }
        together(&talks, &asks, &all)
    }

    #[test]
    fn connections_belong_together_that_are_asked_together_as_often_as_alone() {
        let one = |alone: u32| {
            let all = company(&[(10, vec![0, 1]), (alone, vec![0]), (alone, vec![1])], 2);
            all[0] == all[1]
        };
        assert_eq!((one(10), one(11)), (true, false));
    }

    /// Connections 0 and 1 are asked together as often as alone; between them are so many that are mostly asked alone, each time others.
    #[test]
    fn who_is_asked_next_or_next_but_one_is_company() {
        let with_a_stranger = |between: u32| {
            let mut all = vec![(8, vec![0]), (8, vec![1])];
            for n in 0..8 {
                let strangers: Vec<u32> = (0..between).map(|k| 2 + n * between + k).collect();
                all.extend(strangers.iter().map(|&conn| (3, vec![conn])));
                all.push((1, [vec![0], strangers, vec![1]].concat()));
            }
            let found = company(&all, 2 + 8 * between as usize);
            found[0] == found[2]
        };
        assert_eq!((with_a_stranger(1), with_a_stranger(2)), (false, true));
    }
}
