//! Requests that cannot have been mixed up, however many messages they have: each begins when nothing of its group is missing, after a pause that is longer
//! by far than any inside requests, and none asks a server twice, as two that were taken for one would.

use super::Places;
use super::unbound::FEWEST;
use crate::release::{IN_THE_VALLEY, TOGETHER, VALLEY, quantile};
use crate::stages::Request;

impl Places<'_> {
    /// How many requests a company has, if they stand apart; else 0.
    pub(super) fn apart(&self, company: u32) -> u64 {
        let mut mine: Vec<&Request> = self.requests.iter().filter(|request| request.company == company).collect();
        mine.sort_unstable_by_key(|request| request.begin_ns);
        let (mut inside, mut pauses, mut ended, mut odd) = (Vec::new(), Vec::new(), None, 0_usize);
        for request in &mine {
            let Some(places) = self.in_order(request) else {
                odd += 1;
                continue;
            };
            // While nothing was missing.
            let waits = places.iter().skip(1).filter_map(|&(place, had)| self.asked(place).checked_sub(had));
            inside.extend(waits);
            match ended.map(|ended: u64| request.begin_ns.checked_sub(ended)) {
                Some(Some(pause)) => pauses.push(pause),
                Some(None) => odd += 1,
                None => {}
            }
            odd += usize::from(self.workload.servers_of(request).len() < places.len());
            ended = ended.max(self.end(request));
        }
        let nearly = IN_THE_VALLEY * mine.len() as f64;
        if mine.len() < FEWEST || odd as f64 > nearly || pauses.is_empty() {
            return 0;
        }
        let longest = quantile(&inside, 1.0 - IN_THE_VALLEY).max(TOGETHER);
        let stand_apart = quantile(&pauses, IN_THE_VALLEY) as f64 >= VALLEY * longest as f64;
        if stand_apart { mine.len() as u64 } else { 0 }
    }
}
