//! Memory management unit (MMU) of a lossless switch: Reverie (NSDI 2024), and Dynamic Threshold as
//! the operating system SONiC configures it.
//!
//! A packet is stored once and counted several times: at the port by which it came (ingress), at the
//! port by which it leaves (egress), in the pool of its class, and, if it is lossless and came after its
//! ingress queue had passed its threshold, in the headroom of that queue. A lossless queue that uses
//! headroom pauses its sender (priority flow control, IEEE 802.1Qbb).
//!
//! The layer keeps all counters, whatever the policy. A policy determines how long a queue may become.
//! `Q = Σ in = Σ out = P + H` always, where P is the occupancy of the pool and H that of the headroom.
//!
//! If the paper is silent or its published ns-3 code differs, the setting
//! [`rules`](crate::scenario::LosslessSettings::rules) chooses.

mod side;
mod switching;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use super::SharedBuffer;
use super::buffer::percentile_of_share;
use super::policy::PacketView;
use crate::engine::packet::{Packet, PacketId, PacketKind, PacketQueue, PacketStore, PauseNote};
use crate::engine::topology::SwitchId;
use crate::scenario::{LosslessRules, Priorities, Scenario};
use crate::units::{Rate, Time};

use side::Side;

/// α of unscheduled packets in the published code.
const ALPHA_UNSCHEDULED: f64 = 1_024.0;

/// α of queues that the paper does not bound, in the published code.
const ALPHA_UNBOUNDED: f64 = 10_000.0;

/// Rule by which the thresholds of queues follow from the occupancy.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Sharing {
    /// Dynamic Threshold at ingress and egress, each in its own pool.
    Sonic,
    /// The threshold of `Sonic`, times the drain rate of the queue and divided by the number of
    /// congested queues (ABM, SIGCOMM 2022).
    SonicAbm,
    /// Dynamic Threshold in one pool for both sides, divided by the number of congested queues, for
    /// lengths that a low-pass filter has smoothed (NSDI 2024, §3).
    Reverie {
        /// Weight of the old length at a departure, γ.
        gamma: f64,
    },
}

impl Sharing {
    /// Returns the name of the policy that has this rule.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Sharing::Sonic => "sonic",
            Sharing::SonicAbm => "sonic-abm",
            Sharing::Reverie { .. } => "reverie",
        }
    }
}

/// A policy's settings of the thresholds in a lossless switch.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LosslessThresholds {
    /// The rule for thresholds.
    pub sharing: Sharing,
    /// α of ingress queues of lossless packets.
    pub alpha_ingress: f64,
    /// α of egress queues of lossy packets.
    pub alpha_egress: f64,
}

/// Sizes of the pools and bounds, bytes.
#[derive(Clone, Debug)]
struct Limits {
    /// Size of all memory, b.
    buffer: u64,
    /// Size of the pool of both sides, b_I; Reverie's b_s.
    pool: u64,
    /// Size of all headroom, b_h.
    headroom: u64,
    /// Headroom of a lossless queue of every port.
    port_headroom: Box<[u64]>,
    /// Sizes of the egress pools of lossy and of lossless packets, b_ly and b_ll.
    egress: [u64; 2],
    xon: u64,
    xoff_offset: u64,
}

impl Limits {
    fn new(scenario: &Scenario, capacity: u64, rates: &[Rate]) -> Limits {
        let headroom = scenario.switch_headroom(rates.iter().copied());
        let pool = capacity.saturating_sub(headroom);
        let share = |of: u64, share: f64| crate::convert::floor_u64(share * of as f64);
        Limits {
            buffer: capacity,
            pool,
            headroom,
            port_headroom: rates
                .iter()
                .map(|rate| scenario.port_headroom(*rate))
                .collect(),
            egress: [
                share(pool, scenario.lossless.lossy_pool_share),
                share(capacity, scenario.lossless.lossless_pool_share),
            ],
            xon: scenario.lossless.xon_bytes,
            xoff_offset: scenario.lossless.xoff_offset_bytes,
        }
    }
}

/// A queue at the port by which packets arrive.
#[derive(Clone, Copy, Default, Debug)]
struct Ingress {
    /// Bytes, including those on headroom.
    bytes: u64,
    /// Bytes on headroom.
    headroom: u64,
    /// Start of the current pause of the neighbour.
    pausing: Option<Time>,
    /// Total length of earlier pauses.
    paused: Time,
    /// Time at which the pause is repeated.
    refresh: Time,
}

/// Use of a port's ingress by lossless packets.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct IngressUse {
    /// Bytes stored that came by the port.
    pub bytes: u64,
    /// Total time for which the port's queues have paused the neighbour behind it.
    pub paused: Time,
}

/// A pause frame that a port is to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PauseFrame {
    /// The port.
    pub(crate) port: usize,
    /// The priority that the frame is about.
    pub(crate) priority: usize,
    /// True if the frame pauses; else it resumes.
    pub(crate) pauses: bool,
}

/// A time for which a switch has paused a neighbour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PfcInterval {
    /// The switch that has sent the frames.
    pub switch: SwitchId,
    /// Port of the switch.
    pub port: usize,
    /// The priority that was paused.
    pub priority: usize,
    /// Time at which the switch sent the pause frame.
    pub from: Time,
    /// Time at which the switch sent the frame that resumes; `None` if it did not.
    pub to: Option<Time>,
}

/// Description of a lossless packet that was lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LosslessDrop {
    /// The switch.
    pub switch: SwitchId,
    /// The port by which the packet came.
    pub port: usize,
    /// Priority of the packet.
    pub priority: usize,
    /// Time of the loss.
    pub at: Time,
}

/// A queue of lossless packets at the port by which they came.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct IngressState {
    /// The port.
    pub port: usize,
    /// The priority.
    pub priority: usize,
    /// Length of the queue, bytes, including those on headroom.
    pub bytes: u64,
    /// Bytes on headroom.
    pub headroom_bytes: u64,
    /// The length that is compared with the threshold; for Reverie the filtered length.
    pub compared_bytes: f64,
    /// The threshold beyond which packets go to the headroom, bytes.
    pub threshold_bytes: f64,
}

/// Counts over a run.
#[derive(Clone, Default, Debug)]
pub(crate) struct MmuCounters {
    /// Pauses that were begun.
    pub(crate) pauses: u64,
    pub(crate) drops_lossless: u64,
    pub(crate) first_lossless_drop: Option<LosslessDrop>,
    /// Largest headroom of a queue, bytes.
    pub(crate) max_headroom: u64,
    /// Ended pauses.
    pub(crate) log: Vec<PfcInterval>,
    /// Time of the last departure of a lossless packet.
    pub(crate) last_lossless: Time,
}

/// Decision about an arrival.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Booking {
    Drop,
    Pool,
    Headroom,
}

/// The layer; see the [module](self).
#[derive(Clone, Debug)]
pub(crate) struct Mmu {
    id: SwitchId,
    thresholds: LosslessThresholds,
    limits: Limits,
    as_ns3: bool,
    guard: bool,
    lossless: Priorities,
    priorities: usize,
    ingress: Box<[Ingress]>,
    /// Bytes on headroom, H.
    headroom: u64,
    /// Bytes of lossy and of lossless packets, E_ly and E_ll.
    stored: [u64; 2],
    at_ingress: Side,
    at_egress: Side,
    /// α of every ingress and egress queue.
    alphas: [Box<[f64]>; 2],
    /// Times since when the queue of a port and priority may not send.
    blocked: Box<[Option<Time>]>,
    /// Times at which that ends by itself, if pauses last for a limited time.
    expiries: Box<[Time]>,
    /// Packets of every port that are sent first and count nowhere: pause frames, and behind them the
    /// rest of the control class. In the published code all of them have one queue, the second.
    control: Box<[[PacketQueue; 2]]>,
    frames: VecDeque<PauseFrame>,
    /// Packets that the watchdog has taken from their queues, to be disposed of.
    discarded: Vec<PacketId>,
    use_of_classes: [ClassUse; 2],
    pub(crate) counters: MmuCounters,
}

impl Mmu {
    /// Creates the layer for an empty switch as it [sees](Scenario::at_switch) the scenario; `rates`
    /// are those of its ports.
    pub(crate) fn new(
        id: SwitchId,
        thresholds: LosslessThresholds,
        scenario: &Scenario,
        capacity: u64,
        rates: &[Rate],
    ) -> Mmu {
        let priorities = scenario.queues.queues_per_port as usize;
        let queues = rates.len() * priorities;
        let side = || {
            Side::new(
                rates,
                priorities,
                scenario.lossless.congested,
                scenario.base_rtt(),
            )
        };
        let alphas = [thresholds.alpha_ingress, thresholds.alpha_egress];
        Mmu {
            id,
            thresholds,
            limits: Limits::new(scenario, capacity, rates),
            as_ns3: scenario.lossless.rules == LosslessRules::Ns3,
            guard: scenario.lossless.pool_guard,
            lossless: scenario.lossless.priorities,
            priorities,
            ingress: vec![Ingress::default(); queues].into_boxed_slice(),
            headroom: 0,
            stored: [0; 2],
            at_ingress: side(),
            at_egress: side(),
            alphas: alphas.map(|alpha| vec![alpha; queues].into_boxed_slice()),
            blocked: vec![None; queues].into_boxed_slice(),
            expiries: vec![Time::ZERO; queues].into_boxed_slice(),
            discarded: Vec::new(),
            control: vec![[PacketQueue::default(); 2]; rates.len()].into_boxed_slice(),
            frames: VecDeque::new(),
            use_of_classes: [
                ClassUse::new(scenario.network.buffer_bytes),
                ClassUse::new(scenario.network.buffer_bytes),
            ],
            counters: MmuCounters::default(),
        }
    }

    /// Returns the reason if no packet of some class can ever be stored. `at` is the scenario as the
    /// switch sees it.
    pub(crate) fn shuts_out(&self, at: &Scenario) -> Option<String> {
        let [lossy_pool, lossless_pool] = self.limits.egress;
        let (pool, buffer, id) = (self.limits.pool, self.limits.buffer, self.id.0);
        let lossy = at.largest_lossy_packet_bytes();
        let lossless = at.has_lossless().then(|| at.largest_packet_bytes());
        let least = |packet: u64, of: u64| (packet as f64 / of as f64 * 1e6).ceil() / 1e6;
        let lossy_share = ("lossy_pool_share", at.lossless.lossy_pool_share);
        let lossless_share = ("lossless_pool_share", at.lossless.lossless_pool_share);
        let pools = [
            ("lossy", lossy, lossy_pool, lossy_share, pool),
            ("lossless", lossless, lossless_pool, lossless_share, buffer),
        ];
        for (class, packet, has, (setting, share), of) in pools {
            let too_small = packet.filter(|&packet| has < packet && !self.is_reverie());
            let Some(packet) = too_small else { continue };
            return Some(format!(
                "switch {id} has a pool of {has} bytes for {class} packets, and a packet has up to {packet}; \
                 raise {setting} from {share} to at least {}, or buffer_bytes",
                least(packet, of)
            ));
        }
        // The published code compares the length with the packet.
        let alpha = self.thresholds.alpha_egress;
        let reach = if self.is_reverie() { pool } else { lossy_pool };
        let too_low = |packet: &u64| self.as_ns3 && alpha * (reach as f64) < *packet as f64;
        let packet = lossy.filter(too_low)?;
        Some(format!(
            "with rules ns3 an empty queue of switch {id} has a threshold below a lossy packet of {packet} \
             bytes; raise alpha_e from {alpha} to at least {}, or set rules to paper",
            least(packet, reach)
        ))
    }

    fn is_lossless(&self, queue: usize) -> bool {
        self.lossless.contains(queue % self.priorities)
    }

    /// Returns the ingress queue of a packet that came by a port and belongs to an egress queue.
    fn ingress_of(&self, port: usize, queue: usize) -> usize {
        port * self.priorities + queue % self.priorities
    }

    fn is_reverie(&self) -> bool {
        matches!(self.thresholds.sharing, Sharing::Reverie { .. })
    }

    /// Returns `α (pool - used)`, not below zero.
    fn dynamic(alpha: f64, pool: u64, used: u64) -> f64 {
        alpha * pool.saturating_sub(used) as f64
    }

    /// Returns the threshold of an ingress queue of lossless packets when `pool_used` bytes of the pool
    /// are in use.
    fn ingress_threshold(
        &mut self,
        ingress: usize,
        pool_used: u64,
        unscheduled: bool,
        now: Time,
    ) -> f64 {
        let alpha = self.alphas[0][ingress];
        let length = self.ingress[ingress].bytes;
        let side = &mut self.at_ingress;
        let threshold = match self.thresholds.sharing {
            Sharing::Sonic => Mmu::dynamic(alpha, self.limits.pool, pool_used),
            Sharing::SonicAbm => {
                let alpha = if unscheduled {
                    ALPHA_UNSCHEDULED
                } else {
                    alpha
                };
                side.observe(ingress, length as f64);
                let factor = side.drain_rate(ingress, length, now) / side.congestion(ingress);
                factor * Mmu::dynamic(alpha, self.limits.pool, pool_used)
            }
            Sharing::Reverie { .. } => {
                Mmu::dynamic(alpha, self.limits.pool, pool_used) / side.congestion(ingress)
            }
        };
        side.note(ingress, threshold)
    }

    /// Returns the threshold of an egress queue of lossy packets, which holds `length` bytes.
    fn egress_threshold(
        &mut self,
        queue: usize,
        length: u64,
        pool_used: u64,
        unscheduled: bool,
        now: Time,
    ) -> f64 {
        let alpha = self.alphas[1][queue];
        let side = &mut self.at_egress;
        let [pool, _] = self.limits.egress;
        let [used, _] = self.stored;
        let threshold = match self.thresholds.sharing {
            Sharing::Sonic => Mmu::dynamic(alpha, pool, used),
            Sharing::SonicAbm => {
                let alpha = if unscheduled {
                    ALPHA_UNSCHEDULED
                } else {
                    alpha
                };
                side.observe(queue, length as f64);
                let factor = side.drain_rate(queue, length, now) / side.congestion(queue);
                factor * Mmu::dynamic(alpha, pool, used)
            }
            Sharing::Reverie { .. } => {
                let spared = self.as_ns3 && unscheduled;
                let alpha = if spared { ALPHA_UNSCHEDULED } else { alpha };
                Mmu::dynamic(alpha, self.limits.pool, pool_used) / side.congestion(queue)
            }
        };
        side.note(queue, threshold)
    }

    /// Decides on a packet that came by `port`; the buffer shows the state before it.
    fn admit(
        &mut self,
        buffer: &SharedBuffer,
        port: usize,
        packet: PacketView,
        now: Time,
    ) -> Booking {
        let pool_used = buffer.occupancy() - self.headroom;
        let fits = buffer.occupancy() + packet.bytes <= self.limits.buffer;
        let ingress = self.ingress_of(port, packet.queue);
        match (fits, self.is_lossless(packet.queue)) {
            (false, _) => Booking::Drop,
            (true, true) => self.judge_lossless(buffer, ingress, pool_used, packet, now),
            (true, false) => self.judge_lossy(buffer, ingress, pool_used, packet, now),
        }
    }

    fn judge_lossless(
        &mut self,
        buffer: &SharedBuffer,
        ingress: usize,
        pool_used: u64,
        packet: PacketView,
        now: Time,
    ) -> Booking {
        let bytes = packet.bytes;
        let Ingress { headroom, .. } = self.ingress[ingress];
        let overruns = self.guard && pool_used + bytes > self.limits.pool;
        let uses_headroom =
            headroom > 0 || overruns || self.passes_threshold(ingress, pool_used, packet, now);
        if uses_headroom && (headroom > 0 || !self.as_ns3) {
            let of_port = self.limits.port_headroom[ingress / self.priorities];
            let exceeds = headroom + bytes > of_port;
            if exceeds || self.headroom + bytes > self.limits.headroom {
                return Booking::Drop;
            }
        }
        if !self.is_reverie() {
            let ([_, pool], [_, used]) = (self.limits.egress, self.stored);
            let exceeds = used + bytes > pool;
            let length = buffer.queue(packet.queue);
            let unbounded = Mmu::dynamic(ALPHA_UNBOUNDED, pool, used);
            if exceeds || self.as_ns3 && (length + bytes) as f64 > unbounded {
                return Booking::Drop;
            }
        }
        match uses_headroom {
            true => Booking::Headroom,
            false => Booking::Pool,
        }
    }

    /// Returns true if an ingress queue of lossless packets is too long for one more in the pool. The
    /// published code tests this after it has booked the packet.
    fn passes_threshold(
        &mut self,
        ingress: usize,
        pool_used: u64,
        packet: PacketView,
        now: Time,
    ) -> bool {
        let booked = if self.as_ns3 { packet.bytes } else { 0 };
        let threshold =
            self.ingress_threshold(ingress, pool_used + booked, packet.unscheduled, now);
        match (self.is_reverie(), self.as_ns3) {
            (true, _) => self.at_ingress.filtered(ingress) > threshold,
            (false, true) => (self.ingress[ingress].bytes + booked) as f64 > threshold,
            (false, false) => self.ingress[ingress].bytes as f64 >= threshold,
        }
    }

    fn judge_lossy(
        &mut self,
        buffer: &SharedBuffer,
        ingress: usize,
        pool_used: u64,
        packet: PacketView,
        now: Time,
    ) -> Booking {
        let bytes = packet.bytes;
        if pool_used + bytes > self.limits.pool {
            return Booking::Drop;
        }
        if !self.is_reverie() {
            let came = self.ingress[ingress].bytes;
            let unbounded = Mmu::dynamic(ALPHA_UNBOUNDED, self.limits.pool, pool_used);
            let exceeds = self.stored[0] + bytes > self.limits.egress[0];
            if exceeds || self.as_ns3 && (came + bytes) as f64 > unbounded {
                return Booking::Drop;
            }
        }
        let length = buffer.queue(packet.queue);
        let threshold =
            self.egress_threshold(packet.queue, length, pool_used, packet.unscheduled, now);
        let length = match self.is_reverie() {
            true => self.at_egress.filtered(packet.queue),
            false => length as f64,
        };
        let exceeds = match (self.as_ns3, self.is_reverie()) {
            (true, _) => length + bytes as f64 > threshold,
            (false, true) => length > threshold,
            (false, false) => length >= threshold,
        };
        match exceeds {
            true => Booking::Drop,
            false => Booking::Pool,
        }
    }

    /// Counts a packet that was stored, and asks for a pause if it is on headroom.
    fn charge(&mut self, port: usize, packet: PacketView, charge_of: Booking, now: Time) {
        let class = usize::from(self.is_lossless(packet.queue));
        self.use_of_classes[class].settle(self.stored[class], now);
        self.stored[class] += packet.bytes;
        let place = self.ingress_of(port, packet.queue);
        let ingress = &mut self.ingress[place];
        ingress.bytes += packet.bytes;
        if charge_of == Booking::Headroom {
            ingress.headroom += packet.bytes;
            self.headroom += packet.bytes;
            self.counters.max_headroom = self.counters.max_headroom.max(ingress.headroom);
        }
        if ingress.headroom > 0 && ingress.pausing.is_none() {
            ingress.pausing = Some(now);
            self.counters.pauses += 1;
            self.frames.push_back(PauseFrame {
                port,
                priority: place % self.priorities,
                pauses: true,
            });
        }
    }

    /// Removes a packet that came by `port` and has left from the counts; the buffer shows the state
    /// without it.
    pub(super) fn unbook(
        &mut self,
        buffer: &SharedBuffer,
        port: usize,
        packet: PacketView,
        now: Time,
    ) {
        let lossless = self.is_lossless(packet.queue);
        let class = usize::from(lossless);
        self.use_of_classes[class].settle(self.stored[class], now);
        self.stored[class] -= packet.bytes;
        let place = self.ingress_of(port, packet.queue);
        let ingress = &mut self.ingress[place];
        ingress.bytes -= packet.bytes;
        let freed = ingress.headroom.min(packet.bytes);
        ingress.headroom -= freed;
        self.headroom -= freed;
        self.at_ingress.drain(place, packet.bytes, now);
        self.at_egress.drain(packet.queue, packet.bytes, now);
        if let Sharing::Reverie { gamma } = self.thresholds.sharing {
            let (side, queue, length) = match lossless {
                true => (&mut self.at_ingress, place, ingress.bytes),
                false => (
                    &mut self.at_egress,
                    packet.queue,
                    buffer.queue(packet.queue),
                ),
            };
            side.filter(queue, length, gamma, self.as_ns3);
        }
        if lossless {
            self.counters.last_lossless = now;
            self.resume_if_short(buffer, place, now);
        }
    }

    /// Resumes the paused neighbour of a queue that is short again.
    fn resume_if_short(&mut self, buffer: &SharedBuffer, place: usize, now: Time) {
        let Ingress {
            bytes,
            headroom,
            pausing,
            ..
        } = self.ingress[place];
        let Some(from) = pausing.filter(|_| headroom == 0) else {
            return;
        };
        let pool_used = buffer.occupancy() - self.headroom;
        let threshold = self.ingress_threshold(place, pool_used, false, now);
        let length = match self.is_reverie() {
            true => self.at_ingress.filtered(place),
            false => bytes as f64,
        };
        let is_short = match (self.as_ns3, self.is_reverie()) {
            (true, _) => {
                length < self.limits.xon as f64
                    || length + self.limits.xoff_offset as f64 <= threshold
            }
            (false, true) => length <= threshold || bytes < self.limits.xon,
            (false, false) => length < threshold || bytes < self.limits.xon,
        };
        if !is_short {
            return;
        }
        self.ingress[place].pausing = None;
        self.ingress[place].paused += now - from;
        let (port, priority) = (place / self.priorities, place % self.priorities);
        self.counters.log.push(PfcInterval {
            switch: self.id,
            port,
            priority,
            from,
            to: Some(now),
        });
        self.frames.push_back(PauseFrame {
            port,
            priority,
            pauses: false,
        });
    }

    /// Counts a lossless packet that was lost.
    fn count_loss(&mut self, port: usize, packet: PacketView, now: Time) {
        if !self.is_lossless(packet.queue) {
            return;
        }
        self.counters.drops_lossless += 1;
        let drop = LosslessDrop {
            switch: self.id,
            port,
            priority: packet.queue % self.priorities,
            at: now,
        };
        self.counters.first_lossless_drop.get_or_insert(drop);
    }

    /// Takes the pause frame that is to be sent next.
    pub(crate) fn take_frame(&mut self) -> Option<PauseFrame> {
        self.frames.pop_front()
    }

    /// Returns the threshold of an egress queue of lossy packets, as of the last packet that came to
    /// it, bytes; `None` for other queues, which have none.
    pub(crate) fn threshold(&self, buffer: &SharedBuffer, queue: usize) -> Option<u64> {
        let pool_used = buffer.occupancy() - self.headroom;
        let alpha = self.alphas[1][queue];
        let threshold = match self.thresholds.sharing {
            _ if self.is_lossless(queue) => return None,
            Sharing::Reverie { .. } => {
                let threshold = Mmu::dynamic(alpha, self.limits.pool, pool_used);
                threshold / self.at_egress.congestion(queue)
            }
            _ => Mmu::dynamic(alpha, self.limits.egress[0], self.stored[0]),
        };
        Some(crate::convert::floor_u64(threshold))
    }

    /// Sets α of all egress queues of lossy and of all ingress queues of lossless packets of a port.
    fn set_alphas(&mut self, port: usize, [ingress, egress]: [f64; 2]) {
        let queues = port * self.priorities..(port + 1) * self.priorities;
        self.alphas[0][queues.clone()].fill(ingress);
        self.alphas[1][queues].fill(egress);
    }

    /// Returns the bytes in the lossless queues at the ingress of a port, headroom included, and how
    /// long they have paused their neighbour until `now`; every pause counts.
    fn ingress_at(&self, port: usize, now: Time) -> IngressUse {
        let queues = &self.ingress[port * self.priorities..(port + 1) * self.priorities];
        let own = queues.iter().enumerate();
        let own = own.filter(|(priority, _)| self.lossless.contains(*priority));
        own.fold(IngressUse::default(), |sum, (_, queue)| IngressUse {
            bytes: sum.bytes + queue.bytes,
            paused: sum.paused + queue.paused + queue.pausing.map_or(Time::ZERO, |from| now - from),
        })
    }

    /// Returns the queues of lossless packets at the ports by which they come. `buffer` is that of the
    /// switch. The threshold of `sonic-abm`, whose computation changes state, is the last one computed;
    /// for an empty queue it is that of Dynamic Threshold.
    pub(crate) fn lossless_ingress(
        &self,
        buffer: &SharedBuffer,
    ) -> impl Iterator<Item = IngressState> {
        let pool_used = buffer.occupancy() - self.headroom;
        let state = move |place: usize| {
            let ingress = &self.ingress[place];
            let dynamic = Mmu::dynamic(self.alphas[0][place], self.limits.pool, pool_used);
            let filtered = self.at_ingress.filtered(place);
            let length = ingress.bytes as f64;
            let (compared_bytes, threshold_bytes) = match self.thresholds.sharing {
                Sharing::Sonic => (length, dynamic),
                Sharing::SonicAbm if ingress.bytes == 0 => (length, dynamic),
                Sharing::SonicAbm => (length, self.at_ingress.threshold(place)),
                Sharing::Reverie { .. } => (filtered, dynamic / self.at_ingress.congestion(place)),
            };
            IngressState {
                port: place / self.priorities,
                priority: place % self.priorities,
                bytes: ingress.bytes,
                headroom_bytes: ingress.headroom,
                compared_bytes,
                threshold_bytes,
            }
        };
        let places = 0..self.ingress.len();
        places.filter(|&place| self.is_lossless(place)).map(state)
    }

    /// Returns true if the switch pauses the sender to a port at a priority.
    pub(crate) fn pauses(&self, port: usize, priority: usize) -> bool {
        self.ingress[port * self.priorities + priority]
            .pausing
            .is_some()
    }

    /// Returns the time since when the neighbour behind a port has paused a priority.
    pub(crate) fn blocked_since(&self, port: usize, priority: usize) -> Option<Time> {
        self.blocked[port * self.priorities + priority]
    }

    /// Returns the time at which the pause of a port and priority is to be repeated.
    pub(crate) fn refresh(&self, port: usize, priority: usize) -> Time {
        self.ingress[port * self.priorities + priority].refresh
    }

    /// Sets the time at which the pause of a port and priority is to be repeated.
    pub(crate) fn set_refresh(&mut self, port: usize, priority: usize, at: Time) {
        self.ingress[port * self.priorities + priority].refresh = at;
    }

    /// Returns the time at which the pause by the neighbour behind a port ends by itself.
    pub(crate) fn expiry(&mut self, port: usize, priority: usize) -> &mut Time {
        &mut self.expiries[port * self.priorities + priority]
    }

    /// Returns the bytes of lossy and of lossless packets.
    pub(crate) fn stored(&self) -> [u64; 2] {
        self.stored
    }

    /// Returns how long lossy and lossless packets have used each share of the buffer.
    pub(crate) fn use_of_classes(&self) -> &[ClassUse; 2] {
        &self.use_of_classes
    }

    /// Restarts the counts at `now`.
    pub(crate) fn count_from(&mut self, now: Time) {
        for (used, stored) in self.use_of_classes.iter_mut().zip(self.stored) {
            used.settle(stored, now);
            used.restart(now);
        }
    }

    /// Counts the use of the buffer up to `now`.
    pub(crate) fn count_until(&mut self, now: Time) {
        for (used, stored) in self.use_of_classes.iter_mut().zip(self.stored) {
            used.settle(stored, now);
        }
    }

    /// Returns the pauses that have been begun, including those that last.
    pub(crate) fn paused(&self) -> impl Iterator<Item = PfcInterval> {
        let lasting = self
            .ingress
            .iter()
            .enumerate()
            .filter_map(|(place, queue)| {
                queue.pausing.map(|from| PfcInterval {
                    switch: self.id,
                    port: place / self.priorities,
                    priority: place % self.priorities,
                    from,
                    to: None,
                })
            });
        self.counters.log.iter().copied().chain(lasting)
    }

    /// Returns true if all counters add up, given that the queues of the switch hold what the buffer
    /// counts.
    pub(crate) fn is_consistent(&self, buffer: &SharedBuffer) -> bool {
        let came: u64 = self.ingress.iter().map(|queue| queue.bytes).sum();
        let headroom: u64 = self.ingress.iter().map(|queue| queue.headroom).sum();
        let [lossy, lossless] = self.stored;
        let queues = self.ingress.iter().enumerate().all(|(place, queue)| {
            let of_port = self.limits.port_headroom[place / self.priorities];
            // The published code tests no limit for the first packet on headroom.
            let of_port = if self.as_ns3 { u64::MAX } else { of_port };
            let within = queue.headroom <= queue.bytes && queue.headroom <= of_port;
            let pauses = queue.headroom == 0 || queue.pausing.is_some();
            let filtered = self.at_ingress.filtered(place) <= queue.bytes as f64;
            within && pauses && filtered && (queue.headroom == 0 || self.is_lossless(place))
        });
        let pool = buffer.occupancy() - headroom;
        queues
            && came == buffer.occupancy()
            && lossy + lossless == buffer.occupancy()
            && headroom == self.headroom
            && (self.as_ns3 || headroom <= self.limits.headroom)
            && (!self.guard || pool <= self.limits.pool)
    }

    /// Returns true if no control packet waits at a port.
    fn has_no_control(&self, port: usize) -> bool {
        self.control[port].iter().all(|queue| queue.is_empty())
    }

    /// Returns the control packets that wait, in two queues for each port.
    pub(super) fn control(&self) -> &[PacketQueue] {
        self.control.as_flattened()
    }

    fn pop_control(&mut self, port: usize, packets: &PacketStore) -> Option<PacketId> {
        let mut queues = self.control[port].iter_mut();
        queues.find_map(|queue| queue.pop_front(packets))
    }

    fn push_control(&mut self, port: usize, id: PacketId, packets: &mut PacketStore) {
        let goes_first = packets[id].kind == PacketKind::Pause && !self.as_ns3;
        let [frames, others] = &mut self.control[port];
        let queue = if goes_first { frames } else { others };
        queue.push_back(packets, id);
    }

    /// Returns the frame about a priority that waits at a port, if there is one.
    pub(crate) fn waiting_frame(
        &self,
        packets: &PacketStore,
        port: usize,
        priority: u8,
    ) -> Option<PacketId> {
        let mut waiting = self.control[port]
            .iter()
            .flat_map(|queue| queue.iter(packets));
        waiting.find(|&id| {
            let Packet { kind, sequence, .. } = packets[id];
            kind == PacketKind::Pause && PauseNote::of_sequence(sequence).priority == priority
        })
    }

    /// Records that the neighbour behind a port pauses a priority or resumes it. Idempotent.
    fn set_blocked(&mut self, port: usize, priority: usize, blocked: bool, now: Time) {
        let since = &mut self.blocked[port * self.priorities + priority];
        *since = match blocked {
            true => since.or(Some(now)),
            false => None,
        };
    }
}

/// Bins of the occupancy of a class: equal parts of the buffer.
const BINS: usize = 512;

/// Time for which a class of packets has used each share of the buffer.
#[derive(Clone, Debug)]
pub(crate) struct ClassUse {
    scale: f64,
    changed_at: Time,
    time_in_bin: Box<[u64]>,
    /// Largest use, bytes.
    largest: u64,
}

impl ClassUse {
    fn new(capacity: u64) -> ClassUse {
        ClassUse {
            scale: BINS as f64 / capacity as f64,
            changed_at: Time::ZERO,
            time_in_bin: vec![0; BINS + 1].into_boxed_slice(),
            largest: 0,
        }
    }

    /// Adds the time since the last change, in which the class has used `bytes`.
    fn settle(&mut self, bytes: u64, now: Time) {
        self.largest = self.largest.max(bytes);
        let bin = crate::convert::floor_u64(bytes as f64 * self.scale);
        let bin = crate::convert::index(bin).min(BINS);
        self.time_in_bin[bin] += now.0 - self.changed_at.0;
        self.changed_at = now;
    }

    fn restart(&mut self, now: Time) {
        self.time_in_bin.fill(0);
        self.changed_at = now;
        self.largest = 0;
    }

    /// Returns the time in every part of the buffer, the first part's first.
    pub(crate) fn time_in_bins(&self) -> &[u64] {
        &self.time_in_bin
    }
}

/// Returns the share of the buffer that a class does not exceed for `percent` per cent of the time, for
/// several switches together, as [`percentile_of_share`]. NaN before any time has passed.
pub(crate) fn percentile<'a>(uses: impl Iterator<Item = &'a ClassUse>, percent: f64) -> f64 {
    let mut bins = vec![0u128; BINS + 1];
    let mut largest = 0.0;
    for used in uses {
        for (bin, time) in bins.iter_mut().zip(used.time_in_bins()) {
            *bin += u128::from(*time);
        }
        largest = f64::max(largest, used.largest as f64 * used.scale / BINS as f64);
    }
    percentile_of_share(bins.into_iter(), percent, largest).unwrap_or(f64::NAN)
}
