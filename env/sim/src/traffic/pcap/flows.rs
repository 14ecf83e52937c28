//! Combines segments and datagrams to flows.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use super::coverage::Coverage;
use super::segment::{Segment, Tuple};
use crate::traffic::Trace;

/// The captured part of a flow.
pub(super) struct Flow {
    /// Number of the sending host.
    pub(super) src: u32,
    /// Number of the receiving host.
    pub(super) dst: u32,
    pub(super) udp: bool,
    /// Time of the first packet with payload.
    pub(super) start_ns: i128,
    /// Payload, each byte once.
    pub(super) size: u64,
    /// Packets with payload, retransmissions included.
    pub(super) packets: u64,
}

/// One direction between two ports.
#[derive(Default)]
struct Direction {
    seen: Coverage,
    /// Sequence number that follows the SYN.
    opened_at: Option<u32>,
    /// Index of the current flow.
    flow: Option<usize>,
    /// Time of the last packet with new payload.
    last_ns: Option<i128>,
}

/// Returns the number of hosts.
///
/// # Panics
/// When the number exceeds 32 bits: the hosts would take 68 GB.
pub(super) fn count(hosts: &[IpAddr]) -> u32 {
    u32::try_from(hosts.len()).expect("a capture has fewer than 2^32 hosts")
}

/// All conversations of a capture.
pub(super) struct FlowTable {
    idle_ns: i128,
    directions: HashMap<Tuple, Direction>,
    flows: Vec<Flow>,
    numbers: HashMap<IpAddr, u32>,
    hosts: Vec<IpAddr>,
}

impl FlowTable {
    pub(super) fn new(idle: Duration) -> FlowTable {
        FlowTable {
            idle_ns: i128::try_from(idle.as_nanos()).unwrap_or(i128::MAX),
            directions: HashMap::new(),
            flows: Vec::new(),
            numbers: HashMap::new(),
            hosts: Vec::new(),
        }
    }

    /// Adds the next packet of the capture. Returns true if it belongs to a flow.
    pub(super) fn add(&mut self, time_ns: i128, segment: &Segment) -> bool {
        if segment.syn {
            self.open(segment);
        }
        if segment.payload == 0 {
            return false;
        }
        let direction = self.directions.entry(segment.tuple).or_default();
        let last_ns = direction.last_ns.unwrap_or(time_ns);
        if time_ns - last_ns > self.idle_ns {
            direction.flow = None;
        }
        let new = if segment.tuple.udp {
            segment.payload
        } else {
            direction.seen.add(segment.seq, segment.payload)
        };
        // Bytes that were seen before, such as those of keep-alives, do not end a pause.
        if new > 0 {
            // Times can be before 1970 and so negative.
            direction.last_ns = Some(last_ns.max(time_ns));
        }
        let open = match direction.flow {
            Some(open) => open,
            // A retransmission alone does not start a flow.
            None if new == 0 => return false,
            None => {
                direction.flow = Some(self.flows.len());
                let flow = Flow {
                    src: self.number(segment.tuple.src),
                    dst: self.number(segment.tuple.dst),
                    udp: segment.tuple.udp,
                    start_ns: time_ns,
                    size: 0,
                    packets: 0,
                };
                self.flows.push(flow);
                self.flows.len() - 1
            }
        };
        let flow = &mut self.flows[open];
        flow.size += new;
        flow.packets += 1;
        // The packets of a capture need not be in the order of their times.
        flow.start_ns = flow.start_ns.min(time_ns);
        true
    }

    /// Handles a SYN. One that is not a retransmission starts a new connection between the same ports
    /// and resets both directions. A SYN-ACK resets its own direction only.
    fn open(&mut self, segment: &Segment) {
        let direction = self.directions.entry(segment.tuple).or_default();
        if direction.opened_at == Some(segment.seq) {
            return;
        }
        *direction = Direction {
            opened_at: Some(segment.seq),
            ..Direction::default()
        };
        if !segment.ack {
            self.directions.remove(&segment.tuple.reversed());
        }
    }

    fn number(&mut self, host: IpAddr) -> u32 {
        *self.numbers.entry(host).or_insert_with(|| {
            let number = count(&self.hosts);
            self.hosts.push(host);
            number
        })
    }

    /// Returns true if there are more flows, or directions of connections, than a trace may have flows.
    pub(super) fn is_beyond_limit(&self) -> bool {
        self.flows.len().max(self.directions.len()) > Trace::MAX_FLOWS
    }

    /// Returns the flows in the order of their first packets, and the hosts by number.
    pub(super) fn finish(self) -> (Vec<Flow>, Vec<IpAddr>) {
        (self.flows, self.hosts)
    }
}
