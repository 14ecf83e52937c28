//! State of a flow.

use bufgym_util::convert::index;

use super::{Hosts, labels};
use crate::engine::packet::PacketQueue;
use crate::engine::topology::Topology;
use crate::scenario::MAX_WINDOW;
use crate::traffic::{FlowSpec, Trace, TraceError, host_number};
use crate::transport::{OwnControl, Receiver, Sender, Settings};
use crate::units::Instant;

/// Both ends of a flow, in two cache lines. The first has the fields that the delivery of data uses, the
/// sender fills the second.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(super) struct Flow {
    /// Number of packets of this flow in flight, data and acknowledgements.
    pub(super) in_network: u32,
    pub(super) segments: u32,
    pub(super) src: u16,
    pub(super) dst: u16,
    kind: u16,
    pub(super) priority: u8,
    /// True if the sender may send data.
    pub(super) established: bool,
    pub(super) receiver: Receiver,
    pub(super) stage: Stage,
    /// Due time of the flow's timer event.
    pub(super) timer_at: Instant,
    /// Data packets in the flow's queue at the host.
    pub(super) waiting: PacketQueue,
    pub(super) sender: Sender,
}

impl Flow {
    /// Creates a flow of a valid trace; `second` is the kind of the second class.
    fn new(spec: &FlowSpec, settings: &Settings, preconnected: bool, second: Option<u16>) -> Flow {
        let segments = spec.size.div_ceil(u64::from(settings.mss));
        let mut settings = match spec.query >= 0 {
            true => settings.of_incast(),
            false if second == Some(spec.kind) => settings.of_second(),
            false => *settings,
        };
        if preconnected && spec.query >= 0 {
            settings.initial_window = connected_window(spec.size, &settings);
        }
        Flow {
            in_network: 0,
            segments: u32::try_from(segments).expect("flows with more are refused"),
            src: host_number(spec.src),
            dst: host_number(spec.dst),
            kind: spec.kind,
            priority: spec.priority,
            established: false,
            receiver: Receiver::of(settings.transport),
            stage: Stage::active(0),
            timer_at: Instant::MAX,
            waiting: PacketQueue::default(),
            sender: Sender::new(spec.size, &settings),
        }
    }

    /// Replaces the congestion control of a TCP flow that has not started; `connected` if it begins with the window
    /// of a connection that exists already.
    fn set_transport(&mut self, control: &dyn OwnControl, connected: bool, settings: &Settings) {
        if self.is_rdma() {
            return;
        }
        let mut settings = *settings;
        if connected {
            settings.initial_window = connected_window(self.sender.size(&settings), &settings);
        }
        self.sender.set_congestion(control, &settings);
    }

    /// Returns true if the flow uses RDMA.
    #[inline(always)]
    pub(super) fn is_rdma(&self) -> bool {
        self.receiver.is_rdma()
    }

    /// Returns the number of segments that the receiver has in order.
    pub(super) fn delivered_segments(&self) -> u32 {
        match self.stage.finish() {
            Some(_) => self.segments,
            None => self.receiver.next_expected(),
        }
    }
}

/// Returns the initial window of a connection that exists already, segments: it allows the whole answer at once.
fn connected_window(bytes: u64, settings: &Settings) -> u32 {
    let window = bytes / u64::from(settings.mss) + 1;
    let most = u64::from(MAX_WINDOW / settings.mss);
    u32::try_from(window.min(most)).unwrap_or(1)
}

/// Stage of a flow: its position among the active flows while it is active, then the time of its
/// completion. The last 2^32 times, 4 ms of 213 days, stand for positions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stage(u64);

impl Stage {
    const FIRST_POSITION: u64 = u64::MAX - u32::MAX as u64;

    pub(super) fn active(position: u32) -> Stage {
        Stage(Stage::FIRST_POSITION + u64::from(position))
    }

    pub(super) fn finished(time: Instant) -> Stage {
        debug_assert!(time.0 < Stage::FIRST_POSITION);
        Stage(time.0)
    }

    /// Returns the position among the active flows.
    pub(super) fn position(self) -> usize {
        index(self.0 - Stage::FIRST_POSITION)
    }

    pub(super) fn finish(self) -> Option<Instant> {
        (self.0 < Stage::FIRST_POSITION).then_some(Instant(self.0))
    }
}

/// Properties of a flow that a run seldom needs.
#[derive(Clone, Copy, Debug)]
struct Entry {
    id: u64,
    query: i64,
    start: Instant,
    established: Instant,
}

/// Properties of all flows that a run seldom needs, in the order of their starts.
#[derive(Clone, Debug)]
pub(super) struct Roster {
    entries: Vec<Entry>,
    /// Positions in the trace; empty if the trace has the same order.
    places: Vec<u32>,
}

impl<T: Topology> Hosts<T> {
    /// Replaces the congestion control of all TCP flows, before the run.
    pub(crate) fn set_transport(&mut self, control: &dyn OwnControl) {
        self.settings.paced |= control.boxed().pacer().is_some();
        self.labels |= labels::are_needed(&self.settings) || control.reads_telemetry();
        for (index, flow) in self.flows.iter_mut().enumerate() {
            let connected = self.preconnected && self.roster.query(index) >= 0;
            flow.set_transport(control, connected, &self.settings);
        }
    }
}

/// Returns the flows of a trace in the order of their starts. If `preconnected`, those of queries have the
/// windows of connections that exist already.
pub(super) fn flows_in_start_order(
    trace: &Trace,
    settings: &Settings,
    preconnected: bool,
) -> Result<(Vec<Flow>, Roster), TraceError> {
    if let Some(flow) = trace
        .flows
        .iter()
        .find(|flow| !is_countable(flow, settings))
    {
        let most = u64::from(u32::MAX) * u64::from(settings.mss);
        let problem = format!(
            "size_bytes: must be at most {most} where mss is {}, found {}",
            settings.mss, flow.size
        );
        return Err(TraceError::Flow {
            id: flow.id,
            problem,
        });
    }
    let count = u32::try_from(trace.flows.len());
    let count = count.expect("a trace has fewer than 2^32 flows: they would take 200 GB");
    let mut places: Vec<u32> = (0..count).collect();
    places.sort_by_key(|&place| trace.flows[place as usize].start);
    let in_order = || places.iter().map(|&place| &trace.flows[place as usize]);
    let second = trace.second_kind();
    let flows = in_order()
        .map(|spec| Flow::new(spec, settings, preconnected, second))
        .collect();
    let entries = in_order().map(Entry::new).collect();
    if places.is_sorted() {
        places = Vec::new();
    }
    Ok((flows, Roster { entries, places }))
}

/// Returns true if 32 bits can count the segments of the flow.
fn is_countable(flow: &FlowSpec, settings: &Settings) -> bool {
    flow.size.div_ceil(u64::from(settings.mss)) <= u64::from(u32::MAX)
}

impl Entry {
    fn new(spec: &FlowSpec) -> Entry {
        Entry {
            id: spec.id,
            query: spec.query,
            start: spec.start,
            established: Instant::MAX,
        }
    }
}

impl Roster {
    /// Returns the start of a flow, by its position in the order of starts.
    pub(super) fn start(&self, index: usize) -> Option<Instant> {
        self.entries.get(index).map(|entry| entry.start)
    }

    /// Returns the position of a flow in the trace.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "`flows_in_start_order` has counted the flows in 32 bits"
    )]
    pub(super) fn place(&self, index: usize) -> u32 {
        self.places.get(index).copied().unwrap_or(index as u32)
    }

    /// Returns the number of the flow's query, or -1.
    pub(super) fn query(&self, index: usize) -> i64 {
        self.entries[index].query
    }

    pub(super) fn establish(&mut self, index: usize, now: Instant) {
        self.entries[index].established = now;
    }

    pub(super) fn established(&self, index: usize) -> Option<Instant> {
        let time = self.entries[index].established;
        (time != Instant::MAX).then_some(time)
    }

    /// Returns the flow as it was in the trace.
    pub(super) fn spec(&self, index: usize, flow: &Flow, settings: &Settings) -> FlowSpec {
        let entry = &self.entries[index];
        FlowSpec {
            id: entry.id,
            src: u32::from(flow.src),
            dst: u32::from(flow.dst),
            start: entry.start,
            size: flow.sender.size(settings),
            kind: flow.kind,
            query: entry.query,
            priority: flow.priority,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;

    /// An active flow takes these sizes and at most eight bytes more: its place in the list of active flows
    /// and, in a trace out of order, its position.
    #[test]
    fn flows_stay_small() {
        assert_eq!(size_of::<Sender>(), 64);
        assert_eq!(size_of::<Flow>(), 128);
        assert_eq!(size_of::<Entry>(), 32);
    }

    #[test]
    fn stages_tell_positions_from_times() {
        assert_eq!(Stage::active(u32::MAX).position(), u32::MAX as usize);
        assert_eq!(Stage::active(0).finish(), None);
        let late = Instant::from_ns(2 * Trace::MAX_START_NS);
        assert_eq!(Stage::finished(late).finish(), Some(late));
    }

    #[test]
    fn the_roster_gives_back_what_was_in_the_trace() {
        let settings = Settings::from_scenario(&Scenario::default());
        let spec = |id: u64, start, size| FlowSpec {
            id,
            src: 3,
            dst: 65_535,
            start: Instant(start),
            size,
            kind: 7,
            query: -1 - id as i64,
            priority: 255,
        };
        for starts in [[5, 9, 9], [9, 5, 9], [9, 9, 5]] {
            let trace = Trace {
                flows: vec![
                    spec(70, starts[0], 1),
                    spec(60, starts[1], u64::from(settings.mss)),
                    spec(u64::MAX, starts[2], Trace::MAX_SIZE),
                ],
                ..Trace::default()
            };
            let (flows, roster) = flows_in_start_order(&trace, &settings, false).unwrap();
            for (index, flow) in flows.iter().enumerate() {
                let spec = roster.spec(index, flow, &settings);
                assert_eq!(spec, trace.flows[roster.place(index) as usize]);
            }
            assert!(roster.entries.is_sorted_by_key(|entry| entry.start));
        }
    }

    #[test]
    fn more_segments_than_can_be_counted_are_an_error() {
        let settings = Settings {
            mss: 1,
            ..Settings::from_scenario(&Scenario::default())
        };
        let trace = Trace {
            flows: vec![FlowSpec {
                id: 9,
                src: 0,
                dst: 1,
                start: Instant::ZERO,
                size: 1 << 32,
                kind: 0,
                query: -1,
                priority: 0,
            }],
            ..Trace::default()
        };
        let error = flows_in_start_order(&trace, &settings, false).unwrap_err();
        assert_eq!(
            error.to_string(),
            "flow 9: size_bytes: must be at most 4294967295 where mss is 1, found 4294967296"
        );
    }
}
