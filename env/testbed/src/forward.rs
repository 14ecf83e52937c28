//! The switch: takes frames from the hosts, passes them through the simulator's switch, and sends them
//! at the times when the simulator delivers their last bit.
//!
//! A frame's path has exact times, whatever the processor is doing. The frame begins to cross the line
//! of its host when the kernel has stamped it, or when the frame before it has passed. Its last bit is
//! at the switch one transmission and one propagation later; the switch serves its port at line rate;
//! one propagation later the frame is due at its receiver. Only that last step needs the processor in
//! time. The lateness of this step is the pacing error.

mod frame;

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufWriter};

use bufgym_sim::capture::PcapWriter;
use bufgym_sim::network::{ExternalSwitch, Frame, FrameKind, SimError};
use bufgym_sim::scenario::Scenario;
use bufgym_sim::switch::Policy;
use bufgym_sim::units::{Duration, Instant, Rate};

use crate::machine::{self, monotonic_ns, real_ns};
use crate::plan::Plan;
use crate::raw::PacketSocket;
use frame::{Seen, mark, wire_bytes};

/// Largest size of a frame, bytes.
const FRAME_BYTES: usize = 2_048;
/// Frames that are taken from a host at a time.
const BATCH: usize = 32;
/// Time before a frame is due in which sockets are no longer read.
const GUARD_NS: u64 = 3_000;
/// Longest and shortest sleep of the switch, and the time before a frame is due at which it wakes up.
const LONGEST_REST_NS: u64 = 50_000;
const SHORTEST_REST_NS: u64 = 10_000;
const WAKE_NS: u64 = 30_000;
/// Interval between measurements of the clocks' difference.
const CLOCKS_NS: u64 = 1_000_000;
/// Length of a pause of the loop that only another process can have caused.
const STALL_NS: u64 = 200_000;

/// Measurements of the switch during a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Measured {
    /// Lateness of every frame, nanoseconds, by port.
    pub(crate) late_ns: Vec<Vec<u32>>,
    /// Nanoseconds of the run, and those in which the switch was busy.
    pub(crate) run_ns: u64,
    pub(crate) busy_ns: u64,
    /// Longest pause of the loop, and the total of all pauses above [`STALL_NS`].
    pub(crate) longest_stall_ns: u64,
    pub(crate) stalled_ns: u64,
    /// Frames that the kernel did not take, and frames that are not TCP between the hosts.
    pub(crate) unsent: u64,
    pub(crate) foreign: u64,
    /// Frames whose last bit was at the switch before it had looked at them, and the longest such
    /// delay.
    pub(crate) overtaken: u64,
    pub(crate) overtaken_most_ns: u64,
    /// Wire bytes that have arrived, were sent, and were lost by the policy.
    pub(crate) came_bytes: u64,
    pub(crate) sent_bytes: u64,
    pub(crate) dropped_bytes: u64,
    pub(crate) unsent_bytes: u64,
}

/// Frames in memory.
#[derive(Debug, Default)]
struct Frames {
    frames: Vec<Stored>,
    vacant: Vec<u32>,
}

#[derive(Debug)]
struct Stored {
    bytes: Box<[u8; FRAME_BYTES]>,
    length: usize,
}

impl Frames {
    fn take_place(&mut self) -> u32 {
        self.vacant.pop().unwrap_or_else(|| {
            self.frames.push(Stored {
                bytes: Box::new([0; FRAME_BYTES]),
                length: 0,
            });
            u32::try_from(self.frames.len() - 1).expect("memory ends before")
        })
    }

    fn at(&self, tag: u32) -> &Stored {
        &self.frames[tag as usize]
    }

    fn at_mut(&mut self, tag: u32) -> &mut Stored {
        &mut self.frames[tag as usize]
    }

    fn wire_bytes(&self, tag: u32) -> u64 {
        u64::from(wire_bytes(self.at(tag).length))
    }
}

/// The line from a host to the switch, and the line back.
#[derive(Debug, Default)]
struct Lines {
    /// Time from which the line to the switch is free.
    free: Instant,
    /// Frames in flight to the switch, and the times at which their last bits arrive.
    coming: VecDeque<(Instant, Frame)>,
    /// Frames in flight to the host.
    going: VecDeque<(Instant, u32)>,
}

/// Control that is called after every event at the switch.
pub(crate) trait Control<P> {
    /// Decides, if a decision is due.
    fn after_event(&mut self, switch: &mut ExternalSwitch<P>, now: Instant)
    -> Result<(), SimError>;
}

/// No control for rules, which decide at every packet.
impl<P> Control<P> for () {
    fn after_event(
        &mut self,
        _switch: &mut ExternalSwitch<P>,
        _now: Instant,
    ) -> Result<(), SimError> {
        Ok(())
    }
}

/// The switch with its lines.
pub(crate) struct Forwarder<'a, P> {
    pub(crate) switch: ExternalSwitch<P>,
    pub(crate) measured: Measured,
    sockets: &'a [PacketSocket],
    plan: &'a Plan,
    zero_ns: u64,
    rate: Rate,
    overhead: u64,
    propagation: Duration,
    lines: Vec<Lines>,
    frames: Frames,
    /// True for flows for which a packet has come back from the network.
    heard: Vec<bool>,
    /// The real-time clock minus the monotonic one, and the time of that measurement.
    clocks: (u64, u64),
    pcap: Option<PcapWriter<BufWriter<File>>>,
}

impl<'a, P: Policy> Forwarder<'a, P> {
    /// Creates an idle switch whose time zero is `zero_ns` of the monotonic clock.
    pub(crate) fn new(
        switch: ExternalSwitch<P>,
        scenario: &Scenario,
        plan: &'a Plan,
        sockets: &'a [PacketSocket],
        zero_ns: u64,
        pcap: Option<PcapWriter<BufWriter<File>>>,
    ) -> Forwarder<'a, P> {
        let ports = sockets.len();
        Forwarder {
            switch,
            measured: Measured {
                late_ns: vec![Vec::new(); ports],
                ..Measured::default()
            },
            sockets,
            plan,
            zero_ns,
            rate: scenario.rate(),
            overhead: u64::from(scenario.packets.overhead_bytes),
            propagation: scenario.propagation(),
            lines: (0..ports).map(|_| Lines::default()).collect(),
            frames: Frames::default(),
            heard: vec![false; plan.flows.len()],
            clocks: (0, 0),
            pcap,
        }
    }

    /// Forwards until `done` returns true; it is called some thousand times a second.
    ///
    /// # Errors
    /// When the kernel refuses to hand over frames, when the capture cannot be written, and those of
    /// `done`.
    pub(crate) fn run<E: From<io::Error>>(
        &mut self,
        control: &mut impl Control<P>,
        mut done: impl FnMut() -> Result<bool, E>,
    ) -> Result<(), E> {
        let began = monotonic_ns();
        let mut before = began;
        let mut asked = 0;
        loop {
            let mut worked = self.send_due();
            let now = monotonic_ns();
            let next = self.next_due_ns().unwrap_or(u64::MAX);
            if next > now.saturating_add(GUARD_NS) {
                let horizon = self.time(now);
                worked |= self.take_frames()?;
                worked |= self.advance(horizon, control)?;
            }
            let mut after = monotonic_ns();
            if worked {
                self.measured.busy_ns += after - before;
            } else if let Some(rest) = self.rest(after) {
                machine::sleep_ns(rest);
                after = monotonic_ns();
            }
            let gap = after - before;
            self.measured.longest_stall_ns = self.measured.longest_stall_ns.max(gap);
            if gap > STALL_NS {
                self.measured.stalled_ns += gap;
            }
            before = after;
            if after - asked > 200_000 {
                asked = after;
                if done()? {
                    break;
                }
            }
        }
        self.measured.run_ns = before - began;
        if let Some(pcap) = self.pcap.take() {
            pcap.finish()?;
        }
        Ok(())
    }

    /// Returns how long the switch may be idle, if that is worth a sleep. A frame that comes meanwhile
    /// is due two propagations later at the earliest.
    fn rest(&self, now: u64) -> Option<u64> {
        let longest = self.propagation.as_ns().min(LONGEST_REST_NS);
        let due = self.next_due_ns().map_or(longest, |due| {
            due.saturating_sub(now + WAKE_NS).min(longest)
        });
        let events = self.lines.iter().filter_map(|line| line.coming.front());
        let event = events
            .map(|(at, _)| *at)
            .chain(self.switch.next_departure())
            .min();
        // A frame that the switch sends is due one propagation after the event.
        let event = event.map_or(longest, |at| {
            let at = self.zero_ns + at.as_ns() + self.propagation.as_ns();
            at.saturating_sub(now + WAKE_NS).min(longest)
        });
        Some(due.min(event)).filter(|rest| *rest >= SHORTEST_REST_NS)
    }

    /// Converts an instant of the monotonic clock to the time of the switch.
    fn time(&self, ns: u64) -> Instant {
        Instant::from_ns(ns.saturating_sub(self.zero_ns))
    }

    /// Returns the time at which the next frame is due at its receiver.
    fn next_due_ns(&self) -> Option<u64> {
        let due = self.lines.iter().filter_map(|line| line.going.front());
        due.map(|(due, _)| self.zero_ns + due.as_ns()).min()
    }

    /// Sends all frames that are due, in the order of their due times.
    fn send_due(&mut self) -> bool {
        let mut sent = false;
        loop {
            let fronts = self.lines.iter().enumerate();
            let next = fronts
                .filter_map(|(port, line)| line.going.front().map(|(due, _)| (*due, port)))
                .min();
            let Some((due, port)) = next else {
                return sent;
            };
            let now = monotonic_ns();
            let due_ns = self.zero_ns + due.as_ns();
            if due_ns > now {
                return sent;
            }
            let Some((_, tag)) = self.lines[port].going.pop_front() else {
                return sent;
            };
            let stored = self.frames.at(tag);
            match self.sockets[port].send(&stored.bytes[..stored.length]) {
                Ok(()) => self.measured.sent_bytes += self.frames.wire_bytes(tag),
                Err(_) => {
                    self.measured.unsent += 1;
                    self.measured.unsent_bytes += self.frames.wire_bytes(tag);
                }
            }
            let late = u32::try_from(now - due_ns).unwrap_or(u32::MAX);
            self.measured.late_ns[port].push(late);
            self.frames.vacant.push(tag);
            sent = true;
        }
    }

    /// Takes the frames that the hosts have sent.
    fn take_frames(&mut self) -> io::Result<bool> {
        let mut took = false;
        for host in 0..self.sockets.len() {
            for _ in 0..BATCH {
                let tag = self.frames.take_place();
                let stored = self.frames.at_mut(tag);
                let Some(received) = self.sockets[host].receive(&mut stored.bytes[..])? else {
                    self.frames.vacant.push(tag);
                    break;
                };
                stored.length = received.length.min(FRAME_BYTES);
                took = true;
                let began = self.began(received.stamp_ns);
                match self.classify(host, tag) {
                    Some(frame) if received.length <= FRAME_BYTES => self.cross(host, began, frame),
                    _ => {
                        self.measured.foreign += 1;
                        self.frames.vacant.push(tag);
                    }
                }
            }
        }
        Ok(took)
    }

    /// Returns the arrival time of a frame, by the kernel's stamp if there is one.
    fn began(&mut self, stamp_ns: Option<u64>) -> Instant {
        let now = monotonic_ns();
        if now - self.clocks.1 > CLOCKS_NS {
            self.clocks = (real_ns() - now, now);
        }
        let stamped = stamp_ns.and_then(|stamp| stamp.checked_sub(self.clocks.0));
        self.time(stamped.map_or(now, |stamped| stamped.min(now)))
    }

    fn classify(&mut self, host: usize, tag: u32) -> Option<Frame> {
        let stored = self.frames.at(tag);
        let seen = Seen::of(&stored.bytes[..stored.length], self.sockets.len())?;
        if seen.from != host {
            return None;
        }
        let flow = self.plan.flow_from(host, seen.source_port);
        let back = || self.plan.flow_from(seen.to, seen.destination_port);
        let forward = flow.is_some();
        let number = flow.or_else(back);
        let heard = number.and_then(|flow| self.heard.get_mut(flow as usize));
        let kind = seen.kind(forward);
        let unscheduled = match heard {
            Some(heard) => {
                *heard |= kind == FrameKind::Ack;
                kind == FrameKind::Data && !*heard
            }
            None => false,
        };
        Some(Frame {
            port: seen.to,
            bytes: wire_bytes(stored.length),
            // Probes form a flow of their own.
            flow: number.unwrap_or_else(|| u32::try_from(self.plan.flows.len()).unwrap_or(0)),
            kind,
            markable: seen.markable,
            unscheduled,
            tag,
        })
    }

    /// Lets a frame cross the line from its host.
    fn cross(&mut self, host: usize, began: Instant, frame: Frame) {
        self.measured.came_bytes += u64::from(frame.bytes);
        let on_line = u64::from(frame.bytes) + self.overhead;
        let line = &mut self.lines[host];
        line.free = line.free.max(began) + self.rate.transmission_time(on_line);
        line.coming.push_back((line.free + self.propagation, frame));
    }

    /// Runs the switch up to this instant.
    fn advance(&mut self, horizon: Instant, control: &mut impl Control<P>) -> io::Result<bool> {
        let mut worked = false;
        loop {
            let arrivals = self.lines.iter().enumerate();
            let arrival = arrivals
                .filter_map(|(host, line)| line.coming.front().map(|(at, _)| (*at, host)))
                .min();
            let departure = self.switch.next_departure();
            match (arrival, departure) {
                (Some((at, _)), Some(left)) if left <= at && left <= horizon => self.depart(),
                (Some((at, host)), _) if at <= horizon => self.arrive(host)?,
                (_, Some(left)) if left <= horizon => self.depart(),
                _ => return Ok(worked),
            }
            worked = true;
            while let Some(tag) = self.switch.take_lost() {
                self.measured.dropped_bytes += self.frames.wire_bytes(tag);
                self.frames.vacant.push(tag);
            }
            let now = self.switch.now();
            let decided = control.after_event(&mut self.switch, now);
            decided.map_err(io::Error::other)?;
        }
    }

    fn arrive(&mut self, host: usize) -> io::Result<()> {
        let Some((due, frame)) = self.lines[host].coming.pop_front() else {
            return Ok(());
        };
        let at = due.max(self.switch.now());
        if at > due {
            self.measured.overtaken += 1;
            let by = (at - due).as_ns();
            self.measured.overtaken_most_ns = self.measured.overtaken_most_ns.max(by);
        }
        if let Some(pcap) = &mut self.pcap {
            let stored = self.frames.at(frame.tag);
            pcap.write(at.as_ns(), &stored.bytes[..stored.length], stored.length)?;
        }
        if !self.switch.arrive(at, frame) {
            self.measured.dropped_bytes += u64::from(frame.bytes);
            self.frames.vacant.push(frame.tag);
        }
        Ok(())
    }

    fn depart(&mut self) {
        let Some(departure) = self.switch.depart() else {
            return;
        };
        if departure.marked {
            let stored = self.frames.at_mut(departure.tag);
            mark(&mut stored.bytes[..stored.length]);
        }
        let due = departure.at + self.propagation;
        let line = &mut self.lines[departure.port];
        line.going.push_back((due, departure.tag));
    }

    /// Returns the wire bytes of the frames that are on lines or in the switch.
    pub(crate) fn held_bytes(&self) -> u64 {
        let places = u32::try_from(self.frames.frames.len()).unwrap_or(u32::MAX);
        let all: u64 = (0..places).map(|tag| self.frames.wire_bytes(tag)).sum();
        let vacant = self.frames.vacant.iter();
        all - vacant.map(|&tag| self.frames.wire_bytes(tag)).sum::<u64>()
    }
}
