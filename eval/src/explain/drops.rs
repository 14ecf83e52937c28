//! The occupancy of the port and of the buffer when a packet is lost (Fig. 11 of the NDT paper).

use bufgym_sim::network::{DropRow, Records, SimError};
use bufgym_sim::scenario::Scenario;
use bufgym_sim::switch::{Loss, PolicySpec};
use bufgym_sim::traffic::Trace;
use serde::{Deserialize, Serialize};

use crate::data::Entry;
use crate::stats;

/// The distribution of the occupancy at the lost packets of one policy, over all traces.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DropOccupancy {
    /// The policy.
    #[serde(flatten)]
    pub entry: Entry,
    /// Number of lost packets, acknowledgements included.
    pub drops: u64,
    /// Number of packets lost because the buffer was full. The other lost packets exceeded a threshold.
    pub buffer_full: u64,
    /// Nearest-rank percentiles 0, 0.5, …, 100 of the queue of the packet's port, as a share of the
    /// buffer; empty without drops.
    pub port_share: Vec<f64>,
    /// Nearest-rank percentiles of the bytes in the whole buffer, as a share of the buffer; empty without
    /// drops.
    pub buffer_share: Vec<f64>,
}

impl DropOccupancy {
    /// Summarises drops in a buffer of `capacity` bytes.
    pub fn of(entry: &Entry, rows: &[DropRow], capacity: u64) -> DropOccupancy {
        let shares = |bytes: fn(&DropRow) -> u64| {
            let share = |row| bytes(row) as f64 / capacity as f64;
            let mut shares: Vec<f64> = rows.iter().map(share).collect();
            shares.sort_by(f64::total_cmp);
            stats::half_percentiles(&shares)
        };
        DropOccupancy {
            entry: entry.clone(),
            drops: rows.len() as u64,
            buffer_full: rows.iter().filter(|row| row.loss == Loss::Full).count() as u64,
            port_share: shares(|row| row.queue_bytes),
            buffer_share: shares(|row| row.occupancy_bytes),
        }
    }

    /// Returns the median queue of the port, as a share of the buffer.
    pub fn median_port_share(&self) -> Option<f64> {
        self.port_share.get(self.port_share.len() / 2).copied()
    }

    /// Returns the median occupancy, as a share of the buffer.
    pub fn median_buffer_share(&self) -> Option<f64> {
        self.buffer_share.get(self.buffer_share.len() / 2).copied()
    }
}

/// Returns the lost packets of a rule on a trace.
pub(super) fn of_rule(
    rule: &PolicySpec,
    scenario: &Scenario,
    trace: &Trace,
) -> Result<Vec<DropRow>, SimError> {
    scenario.require_single()?;
    let records = Records {
        drops: true,
        ..Records::default()
    };
    Ok(rule.run_recording(scenario, trace, &records)?.drops)
}

#[cfg(test)]
mod tests {
    use bufgym_sim::switch::SwitchId;
    use bufgym_sim::units::Instant;

    use super::*;
    use crate::Entrant;

    #[test]
    fn shares_of_the_port_and_of_the_buffer() {
        let row = |queue_bytes, occupancy_bytes, loss| DropRow {
            switch: SwitchId(0),
            t: Instant::ZERO,
            port: 0,
            queue_bytes,
            occupancy_bytes,
            loss,
        };
        let rows = [
            row(500, 800, Loss::Refused),
            row(100, 1000, Loss::Full),
            row(200, 900, Loss::Refused),
        ];
        let found = DropOccupancy::of(&Entrant::baseline().entry(), &rows, 1000);
        assert_eq!((found.drops, found.buffer_full), (3, 1));
        assert_eq!(found.median_port_share(), Some(0.2));
        assert_eq!(found.median_buffer_share(), Some(0.9));
        assert_eq!((found.port_share[0], found.port_share[200]), (0.1, 0.5));
        let none = DropOccupancy::of(&Entrant::baseline().entry(), &[], 1000);
        assert_eq!(none.median_port_share(), None);
        assert!(none.port_share.is_empty());
    }

    /// A static threshold limits a port to its share of the buffer.
    #[test]
    fn a_rule_drops_where_its_threshold_lies() {
        let mut scenario = Scenario::default();
        for change in ["flows=60", "active_ports=3", "buffer_bytes=320000"] {
            scenario.set(change).unwrap();
        }
        let seed = bufgym_util::rng::trace_seed(bufgym_util::rng::Split::Validation, 1, 0);
        let trace = bufgym_sim::traffic::generate(&scenario, seed);
        let rows = of_rule(&PolicySpec::named("st"), &scenario, &trace).unwrap();
        let limit = 320_000 / 16;
        assert!(!rows.is_empty());
        assert!(rows.iter().all(|row| row.queue_bytes <= limit));
        assert!(rows.iter().all(|row| row.queue_bytes + 1518 > limit));
    }
}
