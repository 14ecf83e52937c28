//! Priority flow control on the wire (IEEE 802.1Qbb): pause frames between switches and their
//! neighbours, how long they pause, and a watchdog for those that never end.

use super::Simulator;
use crate::engine::event::{PacketEvent, PauseEffect, Timer};
use crate::engine::link::Links;
use crate::engine::packet::{Flags, Packet, PacketId, PacketKind, PauseNote, SizeClass};
use crate::engine::port_link::PortLink;
use crate::engine::topology::{Neighbour, SwitchId, Topology};
use crate::network::observer::Observer;
use crate::scenario::{PfcMode, Scenario, Tier, Watchdog};
use crate::switch::mmu::PauseFrame;
use crate::switch::{Admission, LosslessDrop, PfcInterval, Policy, PolicyParseError, Switch};
use crate::units::{Duration, Instant};

/// Bits of a pause quantum.
const QUANTUM_BITS: u64 = 512;

/// Settings and state of pauses in a network.
#[derive(Clone, Debug)]
pub(super) struct Pauses {
    /// True if some switch is lossless.
    pub(super) active: bool,
    /// Frames on the wire or behind a packet in service.
    pub(super) on_wire: u64,
    bytes: u16,
    response: Duration,
    /// Duration of a pause, in quanta; `None` if pauses last until they are revoked.
    quanta: Option<u16>,
    watchdog: Option<Duration>,
    drops_stuck: bool,
    /// The watchdog's finding, if any.
    stuck: Option<String>,
}

impl Pauses {
    pub(super) fn new(scenario: &Scenario) -> Pauses {
        Pauses {
            active: false,
            on_wire: 0,
            bytes: crate::engine::link::wire_bytes(scenario.lossless.pfc_bytes),
            response: Duration::from_ns(scenario.lossless.pfc_response_ns),
            quanta: match scenario.lossless.pfc {
                PfcMode::XonXoff => None,
                PfcMode::Quanta => {
                    Some(u16::try_from(scenario.lossless.pfc_quanta).unwrap_or(u16::MAX))
                }
            },
            watchdog: (scenario.lossless.pfc_watchdog_us > 0)
                .then(|| Duration::from_us(scenario.lossless.pfc_watchdog_us)),
            drops_stuck: scenario.lossless.watchdog == Watchdog::Drop,
            stuck: None,
        }
    }

    /// Returns the timer to set at time zero.
    pub(super) fn watch(&self) -> Option<Duration> {
        self.watchdog.filter(|_| self.active)
    }
}

/// Makes a switch lossless if its policy has thresholds for that. Returns true if it has.
pub(super) fn enable_lossless<P: Policy, T: Topology>(
    scenario: &Scenario,
    topology: &T,
    switch: &mut Switch<P>,
    links: &Links,
    seed: u64,
) -> Result<bool, PolicyParseError> {
    let Some(thresholds) = switch.policy().lossless_thresholds() else {
        return match scenario.has_lossless() {
            false => Ok(false),
            true => Err(PolicyParseError::Unusable {
                policy: "for lossless_priorities".to_owned(),
                problem: "it has no thresholds at the ingress; must be dt, sonic, sonic-abm or \
                          reverie, and below decisions sonic, sonic-abm or reverie"
                    .to_owned(),
            }),
        };
    };
    let id = switch.id();
    let ports = 0..topology.ports(id);
    let rates: Vec<_> = ports
        .map(|port| links.rate(topology.line(id, port)))
        .collect();
    let at = topology.scenario_at(scenario, id);
    switch.enable_lossless(thresholds, &at, &rates, seed);
    match switch.mmu().and_then(|mmu| mmu.shuts_out(&at)) {
        None => Ok(true),
        Some(problem) => Err(PolicyParseError::Unusable {
            policy: thresholds.sharing.name().to_owned(),
            problem,
        }),
    }
}

/// Events when pauses are in use.
impl<P: Policy, O: Observer, T: Topology> Simulator<P, O, T> {
    #[cold]
    #[inline(never)]
    pub(super) fn on_arrival_lossless(&mut self, event: PacketEvent) {
        if !self.takes_pause(event) {
            self.arrive::<true>(event);
        }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn on_sent_lossless(&mut self, event: PacketEvent) {
        self.leave::<true>(event);
    }
}

/// Sending and receiving frames.
impl<P: Policy, O: Observer, T: Topology> Simulator<P, O, T> {
    /// Sends the pause frames that a switch has asked for.
    #[cold]
    #[inline(never)]
    pub(super) fn send_frames(&mut self, at: SwitchId) {
        while let Some(frame) = self.switches.as_mut()[at.index()].take_frame() {
            self.send_frame(at, frame);
            if frame.pauses && self.pauses.quanta.is_some() {
                self.pause_again_later(at, frame);
            }
        }
    }

    /// Sends a frame. If a frame about the same priority still waits at the port, it is updated
    /// instead, so that a frame waits for at most one of every other priority.
    fn send_frame(&mut self, at: SwitchId, frame: PauseFrame) {
        let now = self.engine.host_now();
        let note = PauseNote {
            priority: u8::try_from(frame.priority).expect("a port has at most 8 queues"),
            quanta: match frame.pauses {
                true => self.pauses.quanta.unwrap_or(u16::MAX),
                false => 0,
            },
        };
        let switch = &mut self.switches.as_mut()[at.index()];
        let packets = &mut self.engine.packets;
        let mmu = switch.mmu();
        let waiting = mmu.and_then(|mmu| mmu.waiting_frame(packets, frame.port, note.priority));
        if let Some(waiting) = waiting {
            packets[waiting].sequence = note.to_sequence();
            return;
        }
        let size = (self.pauses.bytes, SizeClass::Odd);
        let queue = u16::try_from(frame.port * switch.queues_per_port());
        let queue = queue.expect("queues are numbered in 16 bits");
        let mut packet = Packet::new(PacketKind::Pause, u32::MAX, queue, size, now);
        packet.flags = Flags::default().with_control(true);
        packet.sequence = note.to_sequence();
        let id = packets.insert(packet);
        self.pauses.on_wire += 1;
        if switch.send_control(packets, id) == Admission::Served {
            self.serve(at, id);
        }
    }

    /// Returns the time that the line of a port takes for `quanta` quanta.
    fn quanta_time(&self, at: SwitchId, port: usize, quanta: u16) -> Duration {
        let line = self.topology().line(at, port);
        let rate = self.engine.links.rate(line);
        // Longer than any packet: the product does not fit into 64 bits.
        let bit_ps = u128::from(QUANTUM_BITS) * u128::from(quanta) * 1_000_000_000_000;
        Duration(u64::try_from(bit_ps / u128::from(rate.0)).unwrap_or(u64::MAX / 4))
    }

    /// Schedules the repetition of a pause that lasts for a time, after half of it.
    fn pause_again_later(&mut self, at: SwitchId, frame: PauseFrame) {
        let quanta = self.pauses.quanta.unwrap_or(u16::MAX);
        let half = self.quanta_time(at, frame.port, quanta) / 2;
        let due = self.switch_now(at) + half;
        let switch = &mut self.switches.as_mut()[at.index()];
        let queues = switch.queues_per_port();
        if let Some(mmu) = switch.mmu_mut() {
            mmu.set_refresh(frame.port, frame.priority, due);
        }
        let place = u16::try_from(frame.port * queues + frame.priority);
        let place = place.expect("queues are numbered in 16 bits");
        self.engine.set_timer(half, Timer::PauseAgain(at.0, place));
    }

    /// Repeats a pause if it still lasts.
    #[cold]
    pub(super) fn pause_again(&mut self, at: u16, place: u16) {
        let at = SwitchId(at);
        let now = self.switch_now(at);
        let switch = &self.switches.as_ref()[at.index()];
        let queues = switch.queues_per_port();
        let (port, priority) = (usize::from(place) / queues, usize::from(place) % queues);
        let Some(mmu) = switch.mmu() else { return };
        if !mmu.pauses(port, priority) || mmu.refresh(port, priority) != now {
            return;
        }
        let frame = PauseFrame {
            port,
            priority,
            pauses: true,
        };
        self.send_frame(at, frame);
        self.pause_again_later(at, frame);
    }

    /// Notes the port by which a packet comes to a switch. Returns true if it was a pause frame,
    /// which ends here.
    #[inline(never)]
    pub(super) fn takes_pause(&mut self, event: PacketEvent) -> bool {
        let id = event.packet;
        let packet = self.engine.packets[id];
        let Some(from) = event.sending_switch().filter(|_| T::IS_FABRIC) else {
            let port = self.hosts.attachment(event.sender).port;
            self.engine.packets.set_came_by(id, port);
            return false;
        };
        let PortLink { to, back, .. } = self.port_links.at(from, self.port_of(from, id));
        if packet.kind == PacketKind::Pause {
            self.pause_arrives(id, to, back);
            return true;
        }
        self.engine.packets.set_came_by(id, back);
        false
    }

    /// Delivers a pause frame to a host. With a single switch, the frame arrives when it has left.
    pub(super) fn pause_reaches_host(&mut self, id: PacketId) {
        let port = self.port_of(SwitchId(0), id);
        let to = self.topology().neighbour(SwitchId(0), port);
        self.pause_arrives(id, to, 0);
    }

    fn pause_arrives(&mut self, id: PacketId, to: Neighbour, port: u16) {
        let PauseNote { priority, quanta } =
            PauseNote::of_sequence(self.engine.packets[id].sequence);
        self.engine.packets.remove(id);
        self.pauses.on_wire -= 1;
        let (node, is_switch) = match to {
            Neighbour::Host(host) => (host, false),
            Neighbour::Switch(switch) => (switch.0, true),
        };
        let effect = PauseEffect {
            node,
            is_switch,
            port,
            priority,
            quanta,
        };
        match self.pauses.response {
            Duration::ZERO => self.take_pause(effect),
            response => self.engine.set_timer(response, Timer::Pause(effect)),
        }
    }

    /// Applies a pause frame.
    #[cold]
    pub(super) fn take_pause(&mut self, effect: PauseEffect) {
        let pauses = effect.quanta > 0;
        self.set_paused(effect, pauses);
        if !pauses || self.pauses.quanta.is_none() {
            return;
        }
        let at = match effect.is_switch {
            true => SwitchId(effect.node),
            false => self.hosts.attachment(effect.node).switch,
        };
        let port = match effect.is_switch {
            true => effect.port,
            false => self.hosts.attachment(effect.node).port,
        };
        let lasts = self.quanta_time(at, usize::from(port), effect.quanta);
        let until = self.engine.host_now() + lasts;
        *self.expiry(effect) = until;
        self.engine.set_timer(lasts, Timer::PauseEnds(effect));
    }

    /// Returns the time at which the pause ends by itself.
    fn expiry(&mut self, effect: PauseEffect) -> &mut Instant {
        let PauseEffect { node, priority, .. } = effect;
        match effect.is_switch {
            true => {
                let switch = &mut self.switches.as_mut()[usize::from(node)];
                let mmu = switch
                    .mmu_mut()
                    .expect("pauses come with memory management");
                mmu.expiry(usize::from(effect.port), usize::from(priority))
            }
            false => self.hosts.pause_expiry(node, priority),
        }
    }

    /// Ends a pause whose time is over, unless it was renewed.
    #[cold]
    pub(super) fn pause_ends(&mut self, effect: PauseEffect) {
        let now = self.engine.host_now();
        if *self.expiry(effect) <= now {
            self.set_paused(effect, false);
        }
    }

    fn set_paused(&mut self, effect: PauseEffect, pauses: bool) {
        if !effect.is_switch {
            let (host, priority) = (effect.node, effect.priority);
            return self
                .hosts
                .set_paused(host, priority, pauses, &mut self.engine);
        }
        let at = SwitchId(effect.node);
        let frame = PauseFrame {
            port: usize::from(effect.port),
            priority: usize::from(effect.priority),
            pauses,
        };
        let switch = &mut self.switches.as_mut()[at.index()];
        let now = self.engine.now.at(switch.clock_offset());
        let next = switch.block(&mut self.engine.packets, frame, now, &mut self.observer);
        if let Some(next) = next {
            self.serve(at, next);
            self.send_frames(at);
        }
    }
}

/// The watchdog.
impl<P: Policy, O: Observer, T: Topology> Simulator<P, O, T> {
    /// Returns the reason for which the watchdog stopped the run: which queues wait for which.
    pub fn stuck(&self) -> Option<&str> {
        self.pauses.stuck.as_deref()
    }

    /// Looks for queues that have been paused for too long, and again in a while.
    #[cold]
    pub(super) fn watch(&mut self) {
        let Some(longest) = self.pauses.watchdog else {
            return;
        };
        let switches: Vec<SwitchId> = self.switches().iter().map(Switch::id).collect();
        for at in switches {
            let now = self.switch_now(at);
            let switch = &self.switches.as_ref()[at.index()];
            let Some((port, priority)) = switch.stuck_since(now.saturating_sub(longest)) else {
                continue;
            };
            if self.pauses.drops_stuck {
                let switch = &mut self.switches.as_mut()[at.index()];
                switch.discard(
                    &self.engine.packets,
                    port,
                    priority,
                    now,
                    &mut self.observer,
                );
                self.send_frames(at);
                self.dispose_of_discarded(at);
            } else {
                self.pauses.stuck = Some(self.chain_of_pauses(at, port, priority));
                return;
            }
        }
        self.engine.set_timer(longest, Timer::Watchdog);
    }

    fn dispose_of_discarded(&mut self, at: SwitchId) {
        while let Some(id) = self.switches.as_mut()[at.index()].take_discarded() {
            self.dispose(id);
        }
    }

    /// Describes the chain from a paused queue to the one that pauses it, and on to the one that
    /// this one waits for.
    fn chain_of_pauses(&self, at: SwitchId, port: usize, priority: usize) -> String {
        let mut chain = format!("switch {} port {port} priority {priority}", at.0);
        let mut place = (at, port);
        for _ in 0..self.switches.as_ref().len() {
            let Neighbour::Switch(next) = self.topology().neighbour(place.0, place.1) else {
                chain += ", paused by a host";
                return chain;
            };
            let switch = &self.switches.as_ref()[next.index()];
            let blocked = (0..switch.ports()).find(|&port| {
                let since = |mmu: &crate::switch::mmu::Mmu| mmu.blocked_since(port, priority);
                switch.mmu().and_then(since).is_some()
            });
            match blocked {
                Some(port) => {
                    chain += &format!(", paused by switch {} port {port}", next.0);
                    place = (next, port);
                    if place == (at, port) {
                        return chain;
                    }
                }
                None => {
                    chain += &format!(", paused by switch {}, where no port is paused", next.0);
                    return chain;
                }
            }
        }
        chain
    }
}

/// Reporting of pauses.
impl<P: Policy, O: Observer, T: Topology> Simulator<P, O, T> {
    pub(in crate::network) fn pause_summary(&self) -> PauseSummary {
        let (topology, links) = (self.topology(), &self.engine.links);
        let leaf = Tier::Leaf.name();
        let is_leaf = |id| topology.kind(id, links).0 == leaf;
        let now = |switch: &Switch<P>| self.engine.now.at(switch.clock_offset());
        PauseSummary::of(self.switches.as_ref(), is_leaf, now)
    }

    /// Returns the times during which switches have paused their neighbours, in the order of their
    /// beginnings.
    pub fn pauses(&self) -> Vec<PfcInterval> {
        let mmus = self.switches.as_ref().iter().filter_map(Switch::mmu);
        let mut pauses: Vec<PfcInterval> = mmus.flat_map(|mmu| mmu.paused()).collect();
        pauses.sort_by_key(|paused| (paused.from, paused.switch, paused.port, paused.priority));
        pauses
    }

    /// Returns the most bytes on headroom that an ingress queue of any switch has had.
    pub fn most_headroom(&self) -> u64 {
        let mmus = self.switches.as_ref().iter().filter_map(Switch::mmu);
        let most = mmus.map(|mmu| mmu.counters.max_headroom).max();
        most.unwrap_or(0)
    }

    /// Returns the first lossless packet that was lost.
    pub fn first_lossless_drop(&self) -> Option<LosslessDrop> {
        let mmus = self.switches.as_ref().iter().filter_map(Switch::mmu);
        let drops = mmus.filter_map(|mmu| mmu.counters.first_lossless_drop);
        drops.min_by_key(|drop| (drop.at, drop.switch))
    }
}

/// Values about lossless packets in a summary.
#[derive(Clone, Copy, Default, Debug)]
pub(in crate::network) struct PauseSummary {
    pub(in crate::network) pauses: u64,
    pub(in crate::network) drops_lossless: u64,
    pub(in crate::network) paused_ms: f64,
    pub(in crate::network) p99_lossless: f64,
    pub(in crate::network) p99_lossy: f64,
}

impl PauseSummary {
    /// Summarises switches as of now; occupancies are those of `leaves` together, in shares of
    /// their buffers.
    pub(super) fn of<P: Policy>(
        switches: &[Switch<P>],
        is_leaf: impl Fn(SwitchId) -> bool,
        now: impl Fn(&Switch<P>) -> Instant,
    ) -> PauseSummary {
        let mut summary = PauseSummary::default();
        for switch in switches {
            let Some(mmu) = switch.mmu() else { continue };
            summary.pauses += mmu.counters.pauses;
            summary.drops_lossless += mmu.counters.drops_lossless;
            let paused = mmu.paused().map(|paused| {
                let to = paused.to.unwrap_or_else(|| now(switch));
                to.saturating_since(paused.from).as_ms_f64()
            });
            summary.paused_ms += paused.sum::<f64>();
        }
        let leaves = || switches.iter().filter(|switch| is_leaf(switch.id()));
        let uses = |class: usize| {
            let mmus = leaves().filter_map(|switch| switch.mmu());
            let uses = mmus.map(move |mmu| &mmu.use_of_classes()[class]);
            crate::switch::mmu::percentile(uses, 99.0)
        };
        summary.p99_lossy = uses(0);
        summary.p99_lossless = uses(1);
        summary
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::{FabricSimulator, LeafSpine};
    use crate::switch::PolicySpec;
    use crate::traffic::generate;

    /// Returns a network before its first packet. Port 0 of the first switch is sending a frame for
    /// priority 3.
    fn sending(rules: &str) -> FabricSimulator {
        let mut scenario = Scenario::preset("reverie-4x4").unwrap();
        scenario.set(rules).unwrap();
        let policy: PolicySpec = "sonic".parse().unwrap();
        let mut simulator = policy
            .simulator::<LeafSpine>(&scenario, &generate(&scenario, 1))
            .unwrap();
        simulator.send_frame(SwitchId(0), frame(3, true));
        simulator
    }

    fn frame(priority: usize, pauses: bool) -> PauseFrame {
        PauseFrame {
            port: 0,
            priority,
            pauses,
        }
    }

    /// Sends a packet of the control class to the port.
    fn control_comes(simulator: &mut FabricSimulator) {
        let size = (54, SizeClass::Odd);
        let mut packet = Packet::new(PacketKind::Ack, 0, 0, size, Instant::ZERO);
        packet.flags = Flags::default().with_control(true);
        let id = simulator.engine.packets.insert(packet);
        let switch = &mut simulator.switches[0];
        let admission = switch.send_control(&mut simulator.engine.packets, id);
        assert_eq!(admission, Admission::Queued);
    }

    /// Returns the packets that wait at the port, in the order in which they would leave: the
    /// priority and quanta of frames, `None` for other packets.
    fn waiting(simulator: &FabricSimulator) -> Vec<Option<(u8, u16)>> {
        let packets = &simulator.engine.packets;
        let queues = simulator.switches[0].waiting();
        let ids = queues.flat_map(|queue| queue.iter(packets));
        let note = |id| match packets[id].kind {
            PacketKind::Pause => {
                let PauseNote { priority, quanta } = PauseNote::of_sequence(packets[id].sequence);
                Some((priority, quanta))
            }
            _ => None,
        };
        ids.map(note).collect()
    }

    #[test]
    fn one_frame_of_a_priority_waits_and_says_what_holds() {
        let mut simulator = sending("rules=paper");
        for (priority, pauses) in [(3, false), (2, true), (3, true), (2, false), (3, false)] {
            simulator.send_frame(SwitchId(0), frame(priority, pauses));
        }
        assert_eq!(waiting(&simulator), [Some((3, 0)), Some((2, 0))]);
        assert_eq!(simulator.pauses.on_wire, 3);
    }

    #[test]
    fn frames_go_before_the_control_class_but_in_the_published_code() {
        let pause = Some((3, u16::MAX));
        for (rules, expected) in [
            ("rules=paper", [pause, None, None]),
            ("rules=ns3", [None, pause, None]),
        ] {
            let mut simulator = sending(rules);
            control_comes(&mut simulator);
            simulator.send_frame(SwitchId(0), frame(3, true));
            control_comes(&mut simulator);
            assert_eq!(waiting(&simulator), expected, "{rules}");
        }
    }
}
