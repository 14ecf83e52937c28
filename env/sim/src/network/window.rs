//! The measured part of a run.

use super::outcome::SwitchRow;
use crate::engine::event::Timer;
use crate::engine::link::{LinkKind, Links};
use crate::engine::packet::Packet;
use crate::engine::topology::{SwitchId, Topology};
use crate::scenario::Scenario;
use crate::switch::{Policy, Switch};
use crate::units::Instant;

/// The time from the first measured instant to the last, and the switches' activity in between.
///
/// Two timers open and close it; without a window there are none, and it is the whole run.
#[derive(Clone, Debug)]
pub(super) struct Window {
    from: Instant,
    until: Option<Instant>,
    /// True if in-cast flows are a class of their own.
    pub(super) classes_apart: bool,
    /// Wire bytes that each switch of several has begun to send to other switches.
    sent: Vec<u64>,
    /// Rows of the switches at the end of the window.
    closed: Option<Vec<SwitchRow>>,
}

impl Window {
    pub(super) fn new(scenario: &Scenario, switches: usize) -> Window {
        let window = scenario.window();
        Window {
            from: window.map_or(Instant::ZERO, |(from, _)| from),
            until: window.map(|(_, until)| until),
            classes_apart: window.is_some(),
            sent: vec![0; switches],
            closed: None,
        }
    }

    /// Returns the timers to set at time zero.
    pub(super) fn timers(&self) -> impl Iterator<Item = (Instant, Timer)> + use<> {
        let opening = (self.from > Instant::ZERO).then_some((self.from, Timer::WindowOpens));
        let closing = self.until.map(|until| (until, Timer::WindowCloses));
        opening.into_iter().chain(closing)
    }

    /// Returns the start of the window: flows that start from here on count.
    pub(super) fn from(&self) -> Instant {
        self.from
    }

    /// Counts a packet that a switch begins to send over `line`.
    #[inline(always)]
    pub(super) fn count(&mut self, at: SwitchId, line: LinkKind, packet: &Packet) {
        let counts = u64::from(line == LinkKind::FABRIC);
        self.sent[at.index()] += counts * u64::from(packet.wire_bytes);
    }

    /// Opens the window: discards the counts from before it.
    pub(super) fn open<P: Policy>(
        &mut self,
        switches: &mut [Switch<P>],
        now: impl Fn(&Switch<P>) -> Instant,
    ) {
        self.sent.fill(0);
        for switch in switches {
            let now = now(switch);
            switch.count_occupancy_from(now);
        }
    }

    /// Closes the window and keeps the counts so far.
    pub(super) fn close(&mut self, rows: Vec<SwitchRow>) {
        self.closed = Some(rows);
    }

    /// Returns a row per switch, as of `now`: losses and marks of the whole run, the rest within
    /// the window.
    pub(super) fn rows<P: Policy, T: Topology>(
        &self,
        switches: &[Switch<P>],
        topology: &T,
        links: &Links,
        now: Instant,
    ) -> Vec<SwitchRow> {
        let seconds = now.saturating_since(self.from).as_secs_f64();
        let row = |switch: &Switch<P>| {
            let (id, buffer) = (switch.id(), switch.buffer());
            let (kind, uplink_rate) = topology.kind(id, links);
            let sent = 8.0 * self.sent[id.index()] as f64;
            let percentile = |percent| buffer.occupancy_percentile(percent);
            let now = SwitchRow {
                switch: id,
                kind,
                buffer_bytes: buffer.capacity(),
                packets_forwarded: 0,
                drops: 0,
                drops_unscheduled: 0,
                marks: 0,
                pushed_out: 0,
                p50_occupancy: percentile(50.0),
                p95_occupancy: percentile(95.0),
                p99_occupancy: percentile(99.0),
                p9999_occupancy: percentile(99.99),
                max_occupancy: buffer.max_share(),
                uplink_throughput: match uplink_rate {
                    Some(rate) => sent / (rate * seconds),
                    None => f64::NAN,
                },
            };
            let closed = self.closed.as_ref().map(|rows| rows[id.index()]);
            let counters = switch.counters();
            SwitchRow {
                packets_forwarded: counters.forwarded,
                drops: counters.drops,
                drops_unscheduled: counters.drops_unscheduled,
                marks: counters.marks,
                pushed_out: counters.pushed_out,
                ..closed.unwrap_or(now)
            }
        };
        switches.iter().map(row).collect()
    }
}
