//! Requests of any size: what a user causes who does one thing at a time.
//!
//! Where requests ask now more servers and now fewer, no size shows them. But who waits for all that he asked for asks nothing while an answer is missing,
//! beyond the burst with which he begins: connections that go their own way are asked at such moments as often as chance has it.

use super::SEEN;
use super::bursts::{Ask, TOGETHER};
use super::groups::BEYOND_CHANCE;
use super::requests::{IN_THE_VALLEY, RARELY, Request, valley};

/// The requests; none where more than one may be going on, or where it does not show when one ends. With `one_chain` most follow the answer before them
/// at once, as a loop asks them.
pub(super) fn requests(mine: &[u32], asks: &[Ask], one_chain: bool) -> Option<Vec<Request>> {
    let periods = Periods::of(mine, asks);
    // On one connection whose client waits for each answer nothing else can be.
    let several = mine.iter().any(|&n| asks[n as usize].conn != asks[mine[0] as usize].conn);
    let alone = if one_chain { periods.rarely_beside() } else { periods.one_at_a_time() };
    // An event loop (Node.js, asyncio) or a pool of threads has several requests going on: cut by pauses they would be
    // one request of the size of all.
    if several && !alone {
        return None;
    }
    let pauses: Vec<u64> = periods.all.iter().skip(1).map(|period| period.pause).collect();
    let short = pauses.iter().filter(|&&pause| pause <= TOGETHER).count();
    // A stage follows the answers before it at once; so does a user who never pauses, and then nothing tells them apart.
    let longest = match valley(&pauses) {
        // A loop turns to the next call within 500 us; in one chain of calls the application may compute for longer.
        Some(longest) if longest <= TOGETHER || one_chain => longest,
        // Hardly any pause is as short as a stage's: none has stages, and each time with answers missing is a request.
        _ if !one_chain && short as f64 <= RARELY * pauses.len() as f64 => 0,
        _ => return None,
    };
    let mut all: Vec<Request> = Vec::with_capacity(periods.all.len());
    for period in periods.all {
        match all.last_mut() {
            Some(request) if period.pause <= longest => request.extend(period.asks),
            _ => all.push(period.asks),
        }
    }
    Some(all)
}

/// A time in which answers are missing.
struct Period {
    asks: Vec<u32>,
    /// Since the last answer before.
    pause: u64,
}

#[derive(Default)]
struct Periods {
    all: Vec<Period>,
    /// Messages that began nothing and left in no burst, while answers were missing.
    beside: usize,
    /// For how long answers were missing, and how long it all took.
    busy: u64,
    whole: u64,
}

impl Periods {
    fn of(mine: &[u32], asks: &[Ask]) -> Periods {
        let mut found = Periods::default();
        let (mut begin, mut answered, mut last) = (0, 0, 0);
        for &n in mine {
            let ask = &asks[n as usize];
            match found.all.last_mut() {
                Some(period) if ask.at - last <= TOGETHER || answered > ask.at + SEEN => {
                    found.beside += usize::from(ask.at - last > TOGETHER);
                    period.asks.push(n);
                }
                _ => {
                    found.busy += answered.saturating_sub(begin);
                    found.all.push(Period { asks: vec![n], pause: ask.at.saturating_sub(answered) });
                    begin = ask.at;
                }
            }
            answered = answered.max(ask.answered.unwrap_or(ask.at));
            last = ask.at;
        }
        found.busy += answered.saturating_sub(begin);
        found.whole = mine.first().map_or(0, |&first| answered.saturating_sub(asks[first as usize].at));
        found
    }

    fn begun(&self) -> f64 {
        (self.all.len() + self.beside) as f64
    }

    /// Nearly nothing begins while answers are missing.
    fn rarely_beside(&self) -> bool {
        self.beside as f64 <= IN_THE_VALLEY * self.begun()
    }

    /// So rarely does anything begin while answers are missing that it is no chance.
    fn one_at_a_time(&self) -> bool {
        let share = self.busy as f64 / self.whole.max(1) as f64;
        // A binomial: of what began, by chance `share` would begin while answers are missing, with variance n p (1 - p).
        let (expected, beside) = (self.begun() * share, self.beside as f64);
        // A hundred began while half of the time was busy: 50 by chance, give or take 5. Up to four are one user's.
        self.rarely_beside() && expected - beside >= BEYOND_CHANCE * (expected * (1.0 - share)).sqrt().max(0.5)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Messages of which each is a server, when it is asked and when it answers, in units of 100 microseconds.
    fn cut(messages: impl Iterator<Item = (u32, u64, u64)>) -> Option<Vec<usize>> {
        let ask = |(server, at, answered): (u32, u64, u64)| Ask {
            at: at * MS / 10,
            answered: Some(answered * MS / 10),
            server,
            conn: server,
            ..Ask::default()
        };
        let mut asks: Vec<Ask> = messages.map(ask).collect();
        asks.sort_by_key(|ask| ask.at);
        let all: Vec<u32> = (0..asks.len() as u32).collect();
        Some(requests(&all, &asks, false)?.iter().map(Vec::len).collect())
    }

    /// Of a request that begins then, so many messages, each answered after 1 to 3 ms.
    fn one(begin: u64, messages: u32) -> impl Iterator<Item = (u32, u64, u64)> {
        (0..messages).map(move |n| (n, begin + u64::from(n), begin + 10 + u64::from(n) * 7 % 20))
    }

    #[test]
    fn a_user_who_asks_now_more_and_now_fewer_is_told_by_what_he_waits_for() {
        let sizes: Vec<u32> = (0..90).map(|n| 1 + n * 5 % 7).collect();
        let found = cut(sizes.iter().enumerate().flat_map(|(n, &size)| one(n as u64 * 80, size)));
        assert_eq!(found, Some(sizes.iter().map(|&size| size as usize).collect()));
    }

    #[test]
    fn connections_that_go_their_own_way_are_no_user() {
        let alone = |server: u32| {
            let every = 70 + u64::from(server) * 9;
            (0..60).map(move |n| (server, n * every, n * every + 20))
        };
        assert_eq!(cut((0..4).flat_map(alone)), None);
    }

    #[test]
    fn where_hardly_anything_is_missing_at_any_time_chance_would_do_as_well() {
        // Answers are missing for a tenth of the time: of 220 requests 22 would begin in it, of 280 as many as are beyond chance.
        let rare = |requests: u64| cut((0..requests).map(|n| ((n % 3) as u32, n * 100, n * 100 + 10))).is_some();
        assert!(!rare(220) && rare(280));
    }

    #[test]
    fn a_user_who_never_pauses_is_not_told_from_stages() {
        let messages = |n: u64| (0..1 + n * 5 % 7).map(move |k| (k as u32, n * 34 + k, n * 34 + 30));
        let at_once = cut((0..90).flat_map(messages));
        assert_eq!(at_once, None);
    }

    /// Forty calls on one connection, each answered after 1 ms, with so many tenths of a millisecond before the next.
    fn row(pause: impl Fn(u64) -> u64) -> Option<Vec<usize>> {
        let (mut asks, mut now) = (Vec::new(), 0);
        for n in 0..40 {
            asks.push(Ask { at: now, answered: Some(now + MS), ..Ask::default() });
            now += MS + pause(n) * MS / 10;
        }
        let all: Vec<u32> = (0..40).collect();
        Some(requests(&all, &asks, true)?.iter().map(Vec::len).collect())
    }

    #[test]
    fn a_poll_is_no_row_of_calls_whose_user_pauses() {
        assert_eq!(row(|n| 7 + n % 3), None, "a poll each 2 ms");
        assert_eq!(row(|n| if n % 4 == 3 { 300 } else { 7 + n % 3 }), Some(vec![4; 10]));
    }
}
