//! Just inside and just outside of what tells the cause of rounds.

use super::super::bursts::Company;
use super::*;

/// A score whose delays are a millisecond, but for some that are shorter by so much.
fn score(kind: Kind, cost: f64, gain: f64, short: usize, by: u64) -> Score {
    let delays = (0..101).map(|n| Some(if n < short { 1_000_000 - by } else { 1_000_000 })).collect();
    Score { kind, cost, gain, coverage: 1.0, median: 1_000_000, delays }
}

fn all_but(late: usize, cost: f64, by: u64) -> Score {
    score(Kind::Answers(Need::AllBut(late)), cost, 2.0, 50, by)
}

/// Two connections that are asked together, though no round of them is full.
fn company() -> Class {
    let company = Company { connections: vec![0, 1], bursts: Vec::new(), upstream: false };
    Class { full: false, ..Class::of(&company, &[Talk::default(), Talk::default()], &[]) }
}

#[test]
fn a_cause_explains_rounds_if_its_delays_are_spread_over_a_share_1_e_of_what_chance_has() {
    let alone = |gain: f64| {
        let first = score(Kind::Answers(Need::AllBut(0)), 1.0, gain, 0, 0);
        alone_is_better(&company(), &score(Kind::Answers(Need::AllBut(0)), 1.0, 2.0, 0, 0), &first)
    };
    assert_eq!((alone(1.0), alone(0.99)), (false, true));
}

#[test]
fn an_open_cause_must_be_cheaper_by_a_fifth_than_the_round_before() {
    let chosen = |cost: f64| {
        let open = score(Kind::OthersAnswers(1), cost, 2.0, 0, 0);
        cause(Some(all_but(0, 5.0, 0)), Some(open)).map(|score| score.kind)
    };
    assert_eq!(chosen(4.79), Some(Kind::OthersAnswers(1)));
    assert_eq!(chosen(4.81), Some(Kind::Answers(Need::AllBut(0))));
}

/// 3 % of a hundred and one are three.
#[test]
fn three_pauses_in_a_hundred_may_be_short() {
    let early = |short: usize| score(Kind::Timer, 1.0, 2.0, short, 700_000).early();
    assert_eq!((early(3), early(4)), (0, 700_000));
}

/// The steadiest cause has no early pause, and the tap is sure to 50 us.
#[test]
fn a_pause_may_be_twice_as_early_as_the_steadiest_cause_has_it() {
    let left = |early: u64| hardly_early(vec![all_but(0, 5.0, early), all_but(1, 4.0, 0)], &company()).len();
    assert_eq!((left(100_000), left(100_001)), (2, 1));
}

#[test]
fn some_answers_will_do_where_pauses_after_all_are_clearly_less_steady_and_four_times_as_early() {
    let some = |cost: f64, early: u64| closed_by_some(&[all_but(0, cost, early), all_but(1, 4.0, 0)], &company());
    assert!(some(4.51, 200_001));
    assert!(!some(4.49, 200_001) && !some(4.51, 200_000));
}

/// Of twenty rounds the first so many after the one that begins have no delay, the others the median. A class needs four rounds, three with one before.
#[test]
fn three_rounds_that_the_first_cause_does_not_explain_may_have_a_second() {
    let second_for = |strays: usize| {
        let bursts = vec![Burst { asks: Vec::new() }; 20];
        let delays = (0..20).map(|n| (n > strays).then_some(1_000_000)).collect();
        let first = Score { delays, ..all_but(0, 5.0, 0) };
        let timer = score(Kind::Timer, 1.0, 2.0, 0, 0);
        let found = second(&first, &Class { bursts, ..company() }, &[timer], &|kind, _| score(kind, 1.0, 2.0, 0, 0));
        found.map(|score| score.kind)
    };
    assert_eq!([2, 3, 4].map(second_for), [None, Some(Kind::Timer), Some(Kind::Timer)]);
}

/// Before each of ten rounds an answer of another class came.
#[test]
fn the_three_classes_whose_answers_come_last_most_often_are_tried() {
    let starts: Vec<u64> = (1..=10).map(|n| n * 1_000).collect();
    let before = [1, 1, 1, 1, 2, 2, 2, 3, 3, 4].iter().zip(&starts).map(|(&class, &at)| (at - 10, class)).collect();
    let streams = Streams {
        answers: Vec::new(),
        requests: Vec::new(),
        starts: vec![starts],
        since: Vec::new(),
        all_answers: before,
        all_requests: Vec::new(),
    };
    assert_eq!(streams.answered_before(0), [1, 2, 3]);
}
