//! The lines of a record.

use std::fmt::Write as _;
use std::io;

use super::{PacketView, TriggerCause, View};
use crate::scenario::Scenario;
use crate::switch::{Loss, SharedBuffer};
use crate::units::Time;

/// The lines of the events since they were last taken.
#[derive(Clone, Debug)]
pub struct EventLines {
    text: String,
    /// Events in all, with decisions.
    events: u64,
    decisions: u64,
    /// The control's clock, the hosts', is ahead of the switch's by the propagation delay.
    clock_ahead: Time,
    /// Departures take their bytes out of the queue; else that has a line of its own.
    count_in_service: bool,
    queues_per_port: usize,
    /// Lengths of all queues, bytes, as a reader of the lines knows them.
    told: Vec<u64>,
    last_port: usize,
    last_time: Time,
}

impl EventLines {
    pub fn new(scenario: &Scenario) -> EventLines {
        let queues_per_port = scenario.queues_per_port as usize;
        EventLines {
            text: String::new(),
            events: 0,
            decisions: 0,
            clock_ahead: scenario.propagation(),
            count_in_service: scenario.count_in_service,
            queues_per_port,
            told: vec![0; scenario.port_count() * queues_per_port],
            last_port: 0,
            last_time: Time::ZERO,
        }
    }

    /// A packet was enqueued; the view shows the state after it.
    #[cold]
    #[inline(never)]
    pub fn enqueued(&mut self, view: View<'_>, packet: PacketView) {
        let before = view.buffer.queue(packet.queue) - packet.bytes;
        self.settle(view.buffer, Some((packet.queue, before)));
        self.packet('a', view.now, packet);
        self.told[packet.queue] += packet.bytes;
    }

    /// The last bit of a packet has left; the view shows the state after it.
    #[cold]
    #[inline(never)]
    pub fn departed(&mut self, view: View<'_>, packet: PacketView) {
        let taken = match self.count_in_service {
            true => packet.bytes,
            false => 0,
        };
        let before = view.buffer.queue(packet.queue) + taken;
        self.settle(view.buffer, Some((packet.queue, before)));
        self.packet('d', view.now, packet);
        self.told[packet.queue] -= taken;
    }

    /// A packet was lost; the view shows the state after it.
    #[cold]
    #[inline(never)]
    pub fn lost(&mut self, view: View<'_>, packet: PacketView, loss: Loss) {
        let (kind, taken) = match loss {
            Loss::Refused => ('r', 0),
            Loss::Full => ('f', 0),
            Loss::PushedOut => ('p', packet.bytes),
        };
        let before = view.buffer.queue(packet.queue) + taken;
        self.settle(view.buffer, Some((packet.queue, before)));
        self.packet(kind, view.now, packet);
        self.told[packet.queue] -= taken;
    }

    /// `levels` were decided for all ports; `now` is the control's instant.
    pub fn decided(
        &mut self,
        buffer: &SharedBuffer,
        now: Time,
        cause: TriggerCause,
        levels: &[u8],
    ) {
        self.settle(buffer, None);
        self.last_time = now;
        self.decisions += 1;
        self.line(format_args!("D,{},{}", now.as_ps(), cause.name()));
        for level in levels {
            self.line(format_args!(",{level}"));
        }
        self.end_event();
    }

    /// The levels decided last are in force from `now` on, on the control's clock.
    pub fn applied(&mut self, buffer: &SharedBuffer, now: Time) {
        self.settle(buffer, None);
        self.last_time = now;
        self.line(format_args!("L,{}", now.as_ps()));
        self.end_event();
    }

    /// The record is complete.
    pub fn ended(&mut self, buffer: &SharedBuffer, now: Time, finished: bool) {
        self.settle(buffer, None);
        let reason = if finished { "finished" } else { "limit" };
        let (events, decisions) = (self.events, self.decisions);
        self.line(format_args!(
            "E,{},{reason},{events},{decisions}\n",
            now.as_ps()
        ));
    }

    /// Hands over what is new.
    pub fn write(&mut self, out: &mut dyn io::Write) -> io::Result<()> {
        let written = out.write_all(self.text.as_bytes());
        self.text.clear();
        written
    }

    fn packet(&mut self, kind: char, switch_now: Time, packet: PacketView) {
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

    /// Tells of packets that no longer count since the last event: only its port can have such.
    /// `own` is the queue of the event that follows and its length before that.
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
            let uncounted = self.told[queue] - length;
            if uncounted > 0 {
                let time = self.last_time.as_ps();
                self.line(format_args!("u,{time},{queue},{uncounted}"));
                self.end_event();
                self.told[queue] = length;
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
