//! The control record: every packet event and every decision of a run, one line each. A replay
//! checks an implementation of the control with it. `docs/control-loop.md` has the format.

use std::fmt::Write as _;
use std::io;
use std::mem;

use super::{ActionSet, CodeUnits, ControlOptions, LowLevelPolicy, SWITCH};
use bufgym_sim::network::{HostObserver, Observer, SimError};
use bufgym_sim::scenario::Scenario;
use bufgym_sim::switch::policy::TriggerCause;
use bufgym_sim::switch::{
    Loss, PacketView, Policy as _, SharedBuffer, SwitchId, SwitchObserver, View,
};
use bufgym_sim::units::{Duration, Instant};

/// First line of a record: the format and its version.
pub(crate) const RECORD_FORMAT: &str = "bufgym-control-record,1";

/// First line of a record whose decisions set early drop in addition to α.
pub(crate) const EARLY_RECORD_FORMAT: &str = "bufgym-control-record,2";

/// The reason why a run was not recorded.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The run cannot be simulated.
    #[error(transparent)]
    Simulation(#[from] SimError),
    /// The record cannot be written.
    #[error("cannot write the record: {0}")]
    Write(#[from] io::Error),
    /// Decisions have a shortest interval, which records have no lines for.
    #[error("min_interval_us = {0}: a control record is of decisions at their triggers; must be 0")]
    MinInterval(u64),
}

/// The record's header: constants of the run as `key,value` lines; `policy` is the policy string.
///
/// # Errors
/// When the heuristic does not fit the scenario.
pub(super) fn header(
    scenario: &Scenario,
    options: &ControlOptions,
    policy: &str,
) -> Result<String, SimError> {
    let units = CodeUnits::new(scenario);
    let format = match ActionSet::of(&options.low_level).drops_early() {
        false => RECORD_FORMAT,
        true => EARLY_RECORD_FORMAT,
    };
    let mut text = format!("{format}\n");
    let mut line = |key: &str, value: &str| {
        writeln!(text, "{key},{value}").expect("a String takes all text");
    };
    line("policy", &policy.replace(char::is_control, "?"));
    line("low_level", &options.low_level.to_string());
    for (key, value) in options.low_level.policy().build(scenario)?.constants() {
        line(key, &value);
    }
    line("trigger", options.trigger.name());
    let latency = Duration::from_us(scenario.control.decision_latency_us);
    let max_interval = Duration::from_us(scenario.control.max_interval_us);
    for (key, value) in [
        ("ports", u64::from(scenario.network.ports)),
        (
            "queues_per_port",
            u64::from(scenario.queues.queues_per_port),
        ),
        ("buffer_bytes", scenario.network.buffer_bytes),
        ("rate_bps", scenario.network.rate_bps),
        ("beta_bytes", units.beta),
        ("gamma_bytes", units.beta),
        (
            "count_in_service",
            u64::from(scenario.queues.count_in_service),
        ),
        ("decision_latency_ps", latency.as_ps()),
        ("max_interval_ps", max_interval.as_ps()),
    ] {
        line(key, &value.to_string());
    }
    if let Some(aqm) = options.low_level.policy().aqm() {
        for (key, value) in aqm.constants(scenario, SWITCH)? {
            line(key, &value);
        }
    }
    text.push_str("begin\n");
    Ok(text)
}

/// Lines of the events since the last [`write`](EventLines::write).
#[derive(Clone, Debug)]
pub(super) struct EventLines {
    text: String,
    /// Number of all events, decisions included.
    events: u64,
    decisions: u64,
    /// The control uses the hosts' clock, ahead of the switch's by the propagation delay.
    clock_ahead: Duration,
    /// A departure takes its bytes out of the queue length; otherwise a `u` line does so earlier.
    count_in_service: bool,
    /// True if decisions set early drop. Packets lost to it then have their own kind of line.
    early: bool,
    /// True if early drop takes packets from the front of queues. Then every packet that leaves a queue has a line.
    from_front: bool,
    /// The packet that is about to be enqueued was marked by early drop.
    marked: bool,
    queues_per_port: usize,
    /// Lengths of all queues that follow from the lines so far, bytes.
    reported: Vec<u64>,
    last_port: usize,
    last_time: Instant,
}

impl EventLines {
    pub(super) fn new(scenario: &Scenario, low_level: &LowLevelPolicy) -> EventLines {
        let early = ActionSet::of(low_level).drops_early();
        let aqm = low_level.policy().aqm();
        let queues_per_port = scenario.queues.queues_per_port as usize;
        EventLines {
            text: String::new(),
            events: 0,
            decisions: 0,
            clock_ahead: scenario.propagation(),
            count_in_service: scenario.queues.count_in_service,
            early,
            from_front: early && aqm.is_some_and(|aqm| aqm.text("from") == Some("front")),
            marked: false,
            queues_per_port,
            reported: vec![0; scenario.port_count() * queues_per_port],
            last_port: 0,
            last_time: Instant::ZERO,
        }
    }

    /// Adds the decision of `levels` for all ports, those of α and then those of early drop; `now` is on
    /// the control's clock.
    pub(super) fn decided(
        &mut self,
        buffer: &SharedBuffer,
        now: Instant,
        cause: TriggerCause,
        levels: [&[u8]; 2],
    ) {
        self.settle(buffer, None);
        self.last_time = now;
        self.decisions += 1;
        self.line(format_args!("D,{},{}", now.as_ps(), cause.name()));
        for level in levels.into_iter().flatten() {
            self.line(format_args!(",{level}"));
        }
        self.end_event();
    }

    /// Notes that the last decision is in force from `now` on, on the control's clock.
    pub(super) fn applied(&mut self, buffer: &SharedBuffer, now: Instant) {
        self.settle(buffer, None);
        self.last_time = now;
        self.line(format_args!("L,{}", now.as_ps()));
        self.end_event();
    }

    /// Adds the record's last line.
    pub(super) fn ended(&mut self, buffer: &SharedBuffer, now: Instant, finished: bool) {
        self.settle(buffer, None);
        let reason = if finished { "finished" } else { "limit" };
        let (events, decisions) = (self.events, self.decisions);
        self.line(format_args!(
            "E,{},{reason},{events},{decisions}\n",
            now.as_ps()
        ));
    }

    /// Writes the lines to `out` and forgets them.
    pub(super) fn write(&mut self, out: &mut dyn io::Write) -> io::Result<()> {
        let written = out.write_all(self.text.as_bytes());
        self.text.clear();
        written
    }

    fn packet(&mut self, kind: char, switch_now: Instant, packet: PacketView) {
        let PacketView {
            port,
            queue,
            bytes,
            flow,
            ..
        } = packet;
        self.last_port = port;
        self.last_time = switch_now + self.clock_ahead;
        let time = self.last_time.as_ps();
        self.line(format_args!("{kind},{time},{queue},{bytes},{flow}"));
        self.end_event();
    }

    /// Reports bytes that have left a queue's length since the last event, which only its port can
    /// have. `own` is the queue of the next event and its length before that event.
    fn settle(&mut self, buffer: &SharedBuffer, own: Option<(usize, u64)>) {
        if self.count_in_service {
            return;
        }
        let first = self.last_port * self.queues_per_port;
        for queue in first..first + self.queues_per_port {
            let length = match own {
                Some((own, before)) if own == queue => before,
                _ => buffer.queue(queue),
            };
            let uncounted = self.reported[queue] - length;
            if uncounted > 0 {
                let time = self.last_time.as_ps();
                self.line(format_args!("u,{time},{queue},{uncounted}"));
                self.end_event();
                self.reported[queue] = length;
            }
        }
    }

    fn line(&mut self, part: std::fmt::Arguments<'_>) {
        self.text.write_fmt(part).expect("a String takes all text");
    }

    fn end_event(&mut self) {
        self.text.push('\n');
        self.events += 1;
    }
}

impl SwitchObserver for EventLines {
    fn marked(&mut self, _at: SwitchId, _packet: PacketView) {
        self.marked = self.early;
    }

    #[cold]
    #[inline(never)]
    fn enqueued(&mut self, _at: SwitchId, view: View<'_>, packet: PacketView) {
        let before = view.buffer.queue(packet.queue) - packet.bytes;
        self.settle(view.buffer, Some((packet.queue, before)));
        let kind = match mem::take(&mut self.marked) {
            true => 'm',
            false => 'a',
        };
        self.packet(kind, view.now, packet);
        self.reported[packet.queue] += packet.bytes;
    }

    #[cold]
    #[inline(never)]
    fn departed(&mut self, _at: SwitchId, view: View<'_>, packet: PacketView) {
        let taken = match self.count_in_service {
            true => packet.bytes,
            false => 0,
        };
        let before = view.buffer.queue(packet.queue) + taken;
        self.settle(view.buffer, Some((packet.queue, before)));
        self.packet('d', view.now, packet);
        self.reported[packet.queue] -= taken;
    }

    /// Bytes that have left their queue's length are reported by the next event whose order relative to them matters.
    #[cold]
    #[inline(never)]
    fn leaving(&mut self, _at: SwitchId, now: Instant, packet: PacketView) {
        if self.from_front {
            self.packet('s', now, packet);
        }
    }

    #[cold]
    #[inline(never)]
    fn lost(&mut self, _at: SwitchId, view: View<'_>, packet: PacketView, loss: Loss) {
        let (kind, taken) = match loss {
            Loss::Early if self.early => ('e', 0),
            Loss::Refused | Loss::Early => ('r', 0),
            Loss::Full => ('f', 0),
            Loss::Head if self.from_front => ('h', packet.bytes),
            Loss::PushedOut | Loss::Head => ('p', packet.bytes),
        };
        let before = view.buffer.queue(packet.queue) + taken;
        self.settle(view.buffer, Some((packet.queue, before)));
        self.packet(kind, view.now, packet);
        self.reported[packet.queue] -= taken;
    }
}

/// Records every event once [`begin`](ControlRecord::begin) is called; nothing before.
#[derive(Clone, Default, Debug)]
pub struct ControlRecord(Option<Box<EventLines>>);

impl ControlRecord {
    /// Records every event from now on.
    pub(super) fn begin(&mut self, scenario: &Scenario, low_level: &LowLevelPolicy) {
        self.0 = Some(Box::new(EventLines::new(scenario, low_level)));
    }

    /// The lines of the events, if they are recorded.
    pub(super) fn lines_mut(&mut self) -> Option<&mut EventLines> {
        self.0.as_deref_mut()
    }
}

impl SwitchObserver for ControlRecord {
    #[inline]
    fn marked(&mut self, at: SwitchId, packet: PacketView) {
        if let Some(lines) = &mut self.0 {
            lines.marked(at, packet);
        }
    }

    #[inline]
    fn enqueued(&mut self, at: SwitchId, view: View<'_>, packet: PacketView) {
        if let Some(lines) = &mut self.0 {
            lines.enqueued(at, view, packet);
        }
    }

    #[inline]
    fn departed(&mut self, at: SwitchId, view: View<'_>, packet: PacketView) {
        if let Some(lines) = &mut self.0 {
            lines.departed(at, view, packet);
        }
    }

    #[inline]
    fn leaving(&mut self, at: SwitchId, now: Instant, packet: PacketView) {
        if let Some(lines) = &mut self.0 {
            lines.leaving(at, now, packet);
        }
    }

    #[inline]
    fn lost(&mut self, at: SwitchId, view: View<'_>, packet: PacketView, loss: Loss) {
        if let Some(lines) = &mut self.0 {
            lines.lost(at, view, packet, loss);
        }
    }
}

impl HostObserver for ControlRecord {}

impl Observer for ControlRecord {}

#[cfg(test)]
mod tests;
