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

mod admission;
#[cfg(test)]
mod bench;
mod pfc;
mod side;
mod statistics;
mod switching;

use std::collections::VecDeque;

use crate::engine::packet::{PacketId, PacketQueue};
use crate::engine::topology::SwitchId;
use crate::scenario::{LosslessRules, Priorities, Scenario};
use crate::switch::policy::{LosslessThresholds, Sharing};
use crate::units::{Duration, Instant, Rate};

pub(crate) use pfc::PauseFrame;
pub use pfc::PfcInterval;
use side::Side;
pub(crate) use statistics::{ClassUse, MmuCounters, percentile};
pub use statistics::{IngressState, IngressUse, LosslessDrop};

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
        let share = |of: u64, share: f64| bufgym_util::convert::floor_u64(share * of as f64);
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
    pausing: Option<Instant>,
    /// Total length of earlier pauses.
    paused: Duration,
    /// Time at which the pause is repeated.
    refresh: Instant,
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
    blocked: Box<[Option<Instant>]>,
    /// Times at which that ends by itself, if pauses last for a limited time.
    expiries: Box<[Instant]>,
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
            expiries: vec![Instant::ZERO; queues].into_boxed_slice(),
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
}
