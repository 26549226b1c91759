//! Just inside and just outside of what makes pauses those of a request.

use super::*;

const MS: u64 = 1_000_000;

/// Bursts to the same servers, one after another at once, made to requests of four messages but for one of so many.
#[test]
fn repeated_bursts_are_stages_where_four_fifths_of_the_messages_are_in_requests_of_one_size() {
    let stages = |odd: u32| {
        let period = || Period { asks: vec![0, 1], pause: MS, again: true };
        let periods = Periods((0..20).map(|_| period()).collect());
        // The first and the last are not counted: eight requests are 32 messages.
        let sizes = [vec![4; 5], vec![odd], vec![4; 5]].concat();
        let requests: Vec<Request> = sizes.into_iter().map(|size| (0..size).collect()).collect();
        periods.are_stages(&requests, 2 * MS)
    };
    assert_eq!((stages(8), stages(9)), (true, false));
}

/// Requests of two messages, of which the second to server 1; in one of so many requests that comes 12 ms after the first was answered, and users
/// pause for 10 ms. Whether the two are one request.
#[test]
fn a_server_that_begins_one_request_in_ten_begins_none() {
    let mended = |count: u32| {
        let (mut all, mut asks, mut requests) = (Vec::new(), Vec::new(), Vec::<Request>::new());
        for n in 0..count - 1 {
            for server in 0..2 {
                let pause = if server == 0 {
                    10 * MS
                } else if n == 5 {
                    12 * MS
                } else {
                    MS
                };
                let ask = asks.len() as u32;
                all.push(Period { asks: vec![ask], pause, again: false });
                asks.push(Ask { server, conn: server, ..Ask::default() });
                match requests.last_mut().filter(|_| pause == MS) {
                    Some(request) => request.push(ask),
                    None => requests.push(vec![ask]),
                }
            }
        }
        assert_eq!(requests.len(), count as usize);
        Periods(all).mended(&requests, &asks).len() < requests.len()
    };
    assert_eq!((mended(10), mended(9)), (true, false));
}
