//! A manually driven lossless switch for tests.

use super::{LosslessThresholds, Mmu, PauseFrame, Sharing};
use crate::engine::clock::ClockOffset;
use crate::engine::packet::{Packet, PacketId, PacketKind, PacketStore, SizeClass};
use crate::scenario::Scenario;
use crate::switch::policy::LosslessPolicy;
use crate::switch::{Admission, Switch, SwitchId, SwitchSettings};
use crate::units::{Duration, Instant, Rate};

pub(super) const RATE: Rate = Rate(25_000_000_000);

pub(super) const SONIC: Sharing = Sharing::Sonic;

pub(super) fn reverie(gamma: f64) -> Sharing {
    Sharing::Reverie { gamma }
}

/// A switch of two ports with two priorities, of which 1 is lossless. `b` is 100,000 B, of which each
/// port has 20,000 B of headroom, so that the pool has 60,000 B and its lossy part 48,000 B.
pub(super) struct Bench {
    pub(super) switch: Switch<LosslessPolicy>,
    pub(super) packets: PacketStore,
    pub(super) sending: [Option<PacketId>; 2],
    pub(super) now: Instant,
    pub(super) frames: Vec<PauseFrame>,
}

pub(super) const LOSSY: usize = 0;

pub(super) const LOSSLESS: usize = 1;

impl Bench {
    pub(super) fn new(sharing: Sharing, changes: &[&str]) -> Bench {
        Bench::with_alphas(sharing, [1.0; 2], changes)
    }

    pub(super) fn with_alphas(sharing: Sharing, alphas: [f64; 2], changes: &[&str]) -> Bench {
        let mut scenario = Scenario::default();
        let base = [
            "ports=2",
            "incast_degree=1",
            "active_ports=1..2",
            "rate_bps=25000000000",
            "propagation_ns=2000",
            "mss=1000",
            "header_bytes=48",
            "queues_per_port=2",
            "lossless_priorities=1",
            "headroom_bytes=20000",
            "buffer_bytes=100000",
        ];
        for change in base.iter().chain(changes) {
            scenario.set(change).unwrap();
        }
        scenario.validate().unwrap();
        let thresholds = LosslessThresholds {
            sharing,
            alpha_ingress: alphas[0],
            alpha_egress: alphas[1],
        };
        let settings = SwitchSettings::new(&scenario, 2, scenario.network.buffer_bytes);
        let clock_offset = ClockOffset::of(Duration::ZERO);
        let policy = LosslessPolicy(thresholds);
        let mut switch = Switch::new(SwitchId(0), clock_offset, &settings, policy).unwrap();
        switch.enable_lossless(thresholds, &scenario, &[RATE; 2], 1);
        Bench {
            switch,
            packets: PacketStore::default(),
            sending: [None; 2],
            now: Instant::ZERO,
            frames: Vec::new(),
        }
    }

    pub(super) fn mmu(&self) -> &Mmu {
        self.switch.mmu().unwrap()
    }

    /// Sends a packet by a port that is to leave by the other one. Returns true if it is stored.
    pub(super) fn arrive(&mut self, port: usize, priority: usize, bytes: u16) -> bool {
        let out = 1 - port;
        let queue = (2 * out + priority) as u16;
        let size = (bytes, SizeClass::Odd);
        let packet = Packet::new(PacketKind::Data, 0, queue, size, self.now);
        let id = self.packets.insert(packet);
        self.packets.set_came_by(id, port as u16);
        let admission = self.switch.arrive(&mut self.packets, id, self.now, &mut ());
        let stays = match admission {
            Admission::Served => {
                self.sending[out] = Some(id);
                true
            }
            Admission::Queued => true,
            Admission::Lost(_) => false,
        };
        self.settle();
        stays
    }

    /// Completes the packet on the line of a port.
    pub(super) fn depart(&mut self, port: usize) {
        let id = self.sending[port].expect("a packet is on the line");
        self.sending[port] = self.switch.sent(&mut self.packets, id, self.now, &mut ());
        self.settle();
    }

    pub(super) fn settle(&mut self) {
        while let Some(frame) = self.switch.take_frame() {
            self.frames.push(frame);
        }
        assert!(self.mmu().is_consistent(self.switch.buffer()));
    }

    /// Sends `count` lossless packets by the ports in turn. Returns the numbers, from 1, of the packets
    /// that caused a pause, and of the first one lost.
    pub(super) fn fill(
        &mut self,
        ports: &[usize],
        bytes: u16,
        count: usize,
    ) -> (Vec<usize>, Option<usize>) {
        let (mut pauses, mut lost) = (Vec::new(), None);
        for number in 1..=count {
            let before = self.frames.len();
            let port = ports[(number - 1) % ports.len()];
            if !self.arrive(port, LOSSLESS, bytes) && lost.is_none() {
                lost = Some(number);
            }
            if self.frames.len() > before {
                pauses.push(number);
            }
        }
        (pauses, lost)
    }

    /// Returns how many of `count` lossy packets by port 0 are stored.
    pub(super) fn lossy(&mut self, count: usize) -> usize {
        (0..count).filter(|_| self.arrive(0, LOSSY, 1_000)).count()
    }
}

pub(super) const RULES: [&str; 2] = ["rules=paper", "rules=ns3"];
