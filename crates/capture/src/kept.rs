//! What was found in a capture as it is kept while it is replayed: with its rows packed.

use crate::connections::Packed;
use crate::{Analysis, Late, Queued, Train, Turn, Workload, WorkloadError};
use std::fs::File;
use std::io;
use std::net::IpAddr;

/// An analysis whose turns and trains are packed: less than half of what they take as they are.
#[derive(Clone, Debug)]
pub struct Kept {
    analysis: Analysis,
    /// With what is not written of their fronts.
    turns: Packed<(Turn, [Option<Late>; 2])>,
    trains: Packed<Train>,
}

impl Kept {
    /// Packs the rows.
    pub fn new(mut analysis: Analysis) -> Kept {
        let lates = |turn: &Turn| [turn.request_front.late, turn.response_front.late];
        let turns = std::mem::take(&mut analysis.turns).into_iter().map(|turn| (turn, lates(&turn))).collect();
        let trains = std::mem::take(&mut analysis.trains).into_iter().collect();
        Kept { analysis, turns, trains }
    }

    /// Has its rows in files that no folder names, a file each, as far as these take them.
    ///
    /// # Errors
    /// The system's; what is not in a file is where it was.
    pub fn put_aside(&mut self, file: impl Fn() -> io::Result<File>) -> io::Result<()> {
        self.analysis.connections.put_aside(file()?)?;
        self.turns.put_aside(file()?)?;
        self.trains.put_aside(file()?)
    }

    /// All but turns and trains.
    pub fn analysis(&self) -> &Analysis {
        &self.analysis
    }

    /// See [`Analysis::turns`].
    pub fn turns(&self) -> Vec<Turn> {
        let unpacked = |(mut turn, [request, response]): (Turn, [Option<Late>; 2])| {
            (turn.request_front.late, turn.response_front.late) = (request, response);
            turn
        };
        self.turns.iter().map(unpacked).collect()
    }

    /// See [`Analysis::trains`].
    pub fn trains(&self) -> Vec<Train> {
        self.trains.iter().collect()
    }

    /// See [`Analysis::workload`].
    ///
    /// # Errors
    /// As there.
    pub fn workload(&self, aggregator: Option<IpAddr>) -> Result<Workload, WorkloadError> {
        self.analysis.workload_of(&self.turns(), aggregator)
    }

    /// See [`Analysis::queued_before`].
    pub fn queued_before(&self, aggregator: IpAddr) -> Option<Queued> {
        self.analysis.queued_before_of(&self.turns(), aggregator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connections::tests::unnamed;
    use crate::{Gap, Options, analyse};
    use std::ops::ControlFlow;
    use std::path::Path;

    #[test]
    fn rows_come_back_as_they_were_with_what_time_stamps_tell_in_half_of_the_room() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/services/fan.pcap.gz");
        let options = Options { gap: Gap::default(), links: None };
        let found = analyse(&path, &options, &mut |_| ControlFlow::Continue(())).unwrap();
        let kept = Kept::new(found.clone());
        assert_eq!((kept.turns(), kept.trains()), (found.turns.clone(), found.trains.clone()));
        assert!(found.turns.iter().any(|turn| turn.response_front.late.is_some()));
        assert_eq!(kept.workload(None).unwrap(), found.workload(None).unwrap());
        assert_eq!(kept.queued_before(found.hosts[0].ip), found.queued_before(found.hosts[0].ip));
        assert!(kept.analysis().turns.is_empty() && kept.analysis().trains.is_empty());
        let mut aside = kept.clone();
        aside.put_aside(|| Ok(unnamed())).unwrap();
        assert_eq!(aside.turns.bytes() + aside.trains.bytes(), 8 * (found.turns.len() + found.trains.len()));
        assert_eq!((aside.turns(), aside.trains()), (kept.turns(), kept.trains()));
        assert_eq!(aside.analysis(), kept.analysis());
        assert!(2 * kept.turns.bytes() <= found.turns.len() * size_of::<Turn>());
        assert!(2 * kept.trains.bytes() <= found.trains.len() * size_of::<Train>());
    }
}
