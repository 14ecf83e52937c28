use super::{FlowSpec, Trace};
use crate::units::Instant;

mod csv;
mod generator;
mod hosts;
mod lists;
mod pcap;
mod queries;

#[test]
fn the_bytes_of_all_flows_are_not_cut_to_64_bits() {
    let flow = FlowSpec {
        id: 0,
        src: 0,
        dst: 1,
        start: Instant::ZERO,
        size: u64::MAX,
        kind: 0,
        query: -1,
        priority: 0,
    };
    let trace = Trace {
        flows: vec![flow; 2],
        ..Trace::default()
    };
    assert_eq!(trace.total_bytes(), 2 * u128::from(u64::MAX));
}
