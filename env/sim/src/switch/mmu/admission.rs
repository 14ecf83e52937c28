//! Admission of packets by thresholds, and the bytes that they then count for.

use super::{Ingress, Mmu, Sharing};
use crate::switch::SharedBuffer;
use crate::switch::policy::PacketView;
use crate::units::Instant;

/// α of unscheduled packets in the published code.
const ALPHA_UNSCHEDULED: f64 = 1_024.0;

/// α of queues that the paper does not bound, in the published code.
const ALPHA_UNBOUNDED: f64 = 10_000.0;

/// What an admitted packet counts in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Charge {
    Pool,
    Headroom,
}

impl Mmu {
    /// Returns `α (pool - used)`, not below zero.
    pub(super) fn dynamic(alpha: f64, pool: u64, used: u64) -> f64 {
        alpha * pool.saturating_sub(used) as f64
    }

    /// Computes and notes the threshold of a queue of `length` bytes, when `pool_used` bytes of the pool are in
    /// use: of an egress queue of lossy packets, or an ingress queue of lossless ones.
    pub(super) fn compute_threshold(
        &mut self,
        egress: bool,
        queue: usize,
        length: u64,
        pool_used: u64,
        unscheduled: bool,
        now: Instant,
    ) -> f64 {
        let Mmu { limits, .. } = self;
        let sharing = self.thresholds.sharing;
        let (spares, has_own_pool, side) = match (sharing, egress) {
            (Sharing::Reverie { .. }, true) => (self.as_ns3, false, &mut self.at_egress),
            (Sharing::Reverie { .. }, false) => (false, false, &mut self.at_ingress),
            (_, true) => (sharing == Sharing::SonicAbm, true, &mut self.at_egress),
            (_, false) => (sharing == Sharing::SonicAbm, false, &mut self.at_ingress),
        };
        let alpha = match spares && unscheduled {
            true => ALPHA_UNSCHEDULED,
            false => self.alphas[usize::from(egress)][queue],
        };
        let dynamic = match has_own_pool {
            true => Mmu::dynamic(alpha, limits.egress[0], self.stored[0]),
            false => Mmu::dynamic(alpha, limits.pool, pool_used),
        };
        let threshold = match sharing {
            Sharing::Sonic => dynamic,
            Sharing::SonicAbm => {
                side.observe(queue, length as f64);
                side.drain_rate(queue, length, now) / side.congestion(queue) * dynamic
            }
            Sharing::Reverie { .. } => dynamic / side.congestion(queue),
        };
        side.note(queue, threshold)
    }

    /// Decides on a packet that came by `port`; the buffer shows the state before it. Returns `None` if the packet
    /// is to be dropped.
    pub(super) fn admit(
        &mut self,
        buffer: &SharedBuffer,
        port: usize,
        packet: PacketView,
        now: Instant,
    ) -> Option<Charge> {
        let pool_used = buffer.occupancy() - self.headroom;
        let fits = buffer.occupancy() + packet.bytes <= self.limits.buffer;
        let ingress = self.ingress_of(port, packet.queue);
        match (fits, self.is_lossless(packet.queue)) {
            (false, _) => None,
            (true, true) => self.charge_of_lossless(buffer, ingress, pool_used, packet, now),
            (true, false) => self.charge_of_lossy(buffer, ingress, pool_used, packet, now),
        }
    }

    fn charge_of_lossless(
        &mut self,
        buffer: &SharedBuffer,
        ingress: usize,
        pool_used: u64,
        packet: PacketView,
        now: Instant,
    ) -> Option<Charge> {
        let bytes = packet.bytes;
        let Ingress { headroom, .. } = self.ingress[ingress];
        let overruns = self.guard && pool_used + bytes > self.limits.pool;
        let uses_headroom =
            headroom > 0 || overruns || self.passes_threshold(ingress, pool_used, packet, now);
        if uses_headroom && (headroom > 0 || !self.as_ns3) {
            let of_port = self.limits.port_headroom[ingress / self.priorities];
            let exceeds = headroom + bytes > of_port;
            if exceeds || self.headroom + bytes > self.limits.headroom {
                return None;
            }
        }
        if !self.is_reverie() {
            let ([_, pool], [_, used]) = (self.limits.egress, self.stored);
            let exceeds = used + bytes > pool;
            let length = buffer.queue(packet.queue);
            let unbounded = Mmu::dynamic(ALPHA_UNBOUNDED, pool, used);
            if exceeds || self.as_ns3 && (length + bytes) as f64 > unbounded {
                return None;
            }
        }
        match uses_headroom {
            true => Some(Charge::Headroom),
            false => Some(Charge::Pool),
        }
    }

    /// Returns true if an ingress queue of lossless packets is too long for one more in the pool. The
    /// published code tests this after it has charged the packet.
    fn passes_threshold(
        &mut self,
        ingress: usize,
        pool_used: u64,
        packet: PacketView,
        now: Instant,
    ) -> bool {
        let charged = if self.as_ns3 { packet.bytes } else { 0 };
        let (length, used) = (self.ingress[ingress].bytes, pool_used + charged);
        let threshold =
            self.compute_threshold(false, ingress, length, used, packet.unscheduled, now);
        match (self.is_reverie(), self.as_ns3) {
            (true, _) => self.at_ingress.filtered(ingress) > threshold,
            (false, true) => (length + charged) as f64 > threshold,
            (false, false) => length as f64 >= threshold,
        }
    }

    fn charge_of_lossy(
        &mut self,
        buffer: &SharedBuffer,
        ingress: usize,
        pool_used: u64,
        packet: PacketView,
        now: Instant,
    ) -> Option<Charge> {
        let bytes = packet.bytes;
        if pool_used + bytes > self.limits.pool {
            return None;
        }
        if !self.is_reverie() {
            let came = self.ingress[ingress].bytes;
            let unbounded = Mmu::dynamic(ALPHA_UNBOUNDED, self.limits.pool, pool_used);
            let exceeds = self.stored[0] + bytes > self.limits.egress[0];
            if exceeds || self.as_ns3 && (came + bytes) as f64 > unbounded {
                return None;
            }
        }
        let length = buffer.queue(packet.queue);
        let PacketView {
            queue, unscheduled, ..
        } = packet;
        let threshold = self.compute_threshold(true, queue, length, pool_used, unscheduled, now);
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
            true => None,
            false => Some(Charge::Pool),
        }
    }

    /// Counts a packet that was stored, and asks for a pause if it is on headroom.
    pub(super) fn charge(&mut self, port: usize, packet: PacketView, charge: Charge, now: Instant) {
        let class = usize::from(self.is_lossless(packet.queue));
        self.use_of_classes[class].settle(self.stored[class], now);
        self.stored[class] += packet.bytes;
        let place = self.ingress_of(port, packet.queue);
        let ingress = &mut self.ingress[place];
        ingress.bytes += packet.bytes;
        if charge == Charge::Headroom {
            ingress.headroom += packet.bytes;
            self.headroom += packet.bytes;
            self.counters.max_headroom = self.counters.max_headroom.max(ingress.headroom);
        }
        self.pause_if_on_headroom(place, now);
    }

    /// Removes a packet that came by `port` and has left from the counts; the buffer shows the state
    /// without it.
    pub(in crate::switch) fn discharge(
        &mut self,
        buffer: &SharedBuffer,
        port: usize,
        packet: PacketView,
        now: Instant,
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
        Some(bufgym_util::convert::floor_u64(threshold))
    }

    /// Sets α of all egress queues of lossy and of all ingress queues of lossless packets of a port.
    pub(super) fn set_alphas(&mut self, port: usize, [ingress, egress]: [f64; 2]) {
        let queues = port * self.priorities..(port + 1) * self.priorities;
        self.alphas[0][queues.clone()].fill(ingress);
        self.alphas[1][queues].fill(egress);
    }
}

#[cfg(test)]
mod tests {
    //! The worked examples of the rules, computed manually, under both forms of the rules.

    use crate::switch::mmu::bench::{Bench, LOSSLESS, LOSSY, RULES, SONIC, reverie};
    use crate::units::Instant;

    #[test]
    fn s1_a_lossless_queue_passes_its_threshold() {
        for rules in RULES {
            let mut bench = Bench::new(SONIC, &[rules]);
            assert_eq!(bench.fill(&[0], 1_000, 51), (vec![31], Some(51)), "{rules}");
            let mmu = bench.mmu();
            assert_eq!((mmu.headroom, mmu.counters.drops_lossless), (20_000, 1));
        }
    }

    #[test]
    fn s1_with_packets_that_do_not_divide_the_pool() {
        for (rules, pause, drop) in [(RULES[0], 30, 49), (RULES[1], 29, 48)] {
            let mut bench = Bench::new(SONIC, &[rules]);
            assert_eq!(
                bench.fill(&[0], 1_048, 50),
                (vec![pause], Some(drop)),
                "{rules}"
            );
        }
    }

    #[test]
    fn s3_lossless_packets_see_lossy_ones() {
        for rules in RULES {
            let mut bench = Bench::new(SONIC, &[rules]);
            assert_eq!(bench.lossy(30), 24, "{rules}");
            assert_eq!(bench.fill(&[0], 1_000, 19), (vec![19], None), "{rules}");
        }
    }

    #[test]
    fn s4_lossy_packets_do_not_see_lossless_ones() {
        for rules in RULES {
            let mut bench = Bench::new(SONIC, &[rules]);
            assert_eq!(bench.fill(&[0], 1_000, 30), (vec![], None));
            assert_eq!(bench.lossy(30), 24, "{rules}");
        }
    }

    #[test]
    fn r1_the_guard_sends_bursts_to_the_headroom() {
        for rules in RULES {
            let mut bench = Bench::new(reverie(0.999), &[rules]);
            assert_eq!(bench.fill(&[0], 1_000, 81), (vec![61], Some(81)), "{rules}");
            let mut bench = Bench::new(reverie(0.999), &[rules, "pool_guard=false"]);
            assert_eq!(bench.fill(&[0], 1_000, 101), (vec![], Some(101)), "{rules}");
        }
    }

    #[test]
    fn r2_a_lossy_burst_has_the_whole_pool() {
        for rules in RULES {
            assert_eq!(
                Bench::new(reverie(0.999), &[rules]).lossy(70),
                60,
                "{rules}"
            );
        }
        assert_eq!(Bench::new(SONIC, &[]).lossy(70), 24);
    }

    /// Returns the filtered lengths after each of `count` departures of twenty packets.
    fn filtered(gamma: f64, rules: &str, count: usize) -> Vec<f64> {
        let mut bench = Bench::new(reverie(gamma), &[rules]);
        bench.fill(&[0], 1_000, 20);
        let after = |bench: &mut Bench| {
            bench.depart(1);
            bench.mmu().at_ingress.filtered(LOSSLESS)
        };
        (0..count).map(|_| after(&mut bench)).collect()
    }

    #[test]
    fn r3_the_filter_follows_departures() {
        let lengths = filtered(0.9, RULES[0], 20);
        for (length, expected) in lengths
            .iter()
            .zip([1_900.0, 3_510.0, 4_859.0, 5_973.1, 6_875.79])
        {
            assert!((length - expected).abs() < 1e-6, "{length}");
        }
        assert!((lengths[10] - 8_899.492_7).abs() < 1e-3, "{}", lengths[10]);
        for (departed, length) in lengths.iter().enumerate().skip(11) {
            let queue = 1_000.0 * (19 - departed) as f64;
            assert_eq!(*length, queue, "capped from then on");
        }
    }

    #[test]
    fn r4_the_published_code_cuts_bytes_off() {
        let close = |lengths: Vec<f64>, expected: [f64; 4]| {
            for (length, expected) in lengths.iter().zip(expected) {
                assert!((length - expected).abs() < 1e-6, "{length}");
            }
        };
        close(
            filtered(0.999, RULES[0], 4),
            [19.0, 36.981, 53.944_019, 69.890_074_981],
        );
        close(filtered(0.999, RULES[1], 4), [19.0, 36.0, 52.0, 67.0]);
    }

    #[test]
    fn r5_congested_queues_share_the_threshold() {
        let mut bench = Bench::new(reverie(0.999), &[]);
        for (port, bytes) in [(0, 10_240), (1, 19_760)] {
            assert!(bench.arrive(port, LOSSLESS, bytes));
        }
        let mmu = bench.switch.mmu_mut().unwrap();
        for (place, length) in [(LOSSLESS, 10_240.0), (2 + LOSSLESS, 30_000.0)] {
            mmu.at_ingress.observe(place, length);
        }
        assert_eq!(mmu.at_ingress.congestion(LOSSLESS), 1.5);
        let threshold = mmu.compute_threshold(false, LOSSLESS, 0, 30_000, false, Instant::ZERO);
        assert_eq!(threshold, 20_000.0);
    }

    /// Sends lossless packets by port 0 and lossy ones by port 1, two of each in a slot, the lossless ones
    /// unless paused; one of each departs. Returns the mean pool shares of the second half.
    fn shares(alphas: [f64; 2]) -> [f64; 2] {
        let changes = ["buffer_bytes=1861760"];
        let mut bench = Bench::with_alphas(reverie(0.9), alphas, &changes);
        assert_eq!(bench.mmu().limits.pool, 1_821_760);
        let slots = 40_000;
        let mut sums = [0.0; 2];
        for slot in 0..slots {
            bench.now = Instant::from_ns(335 * slot);
            for _ in 0..2 {
                if !bench.mmu().pauses(0, LOSSLESS) {
                    bench.arrive(0, LOSSLESS, 1_000);
                }
                bench.arrive(1, LOSSY, 1_000);
            }
            bench.depart(0);
            bench.depart(1);
            if slot >= slots / 2 {
                let mmu = bench.mmu();
                sums[0] += (mmu.stored[1] - mmu.headroom) as f64;
                sums[1] += mmu.stored[0] as f64;
            }
        }
        sums.map(|sum| sum / (slots / 2) as f64)
    }

    #[test]
    fn r6_alphas_are_shares_of_the_pool() {
        for (alphas, expected) in [
            ([1.0, 1.0], [607_253.0, 607_253.0]),
            ([2.0, 1.0], [910_880.0, 455_440.0]),
        ] {
            let shares = shares(alphas);
            for (share, expected) in shares.iter().zip(expected) {
                assert!(
                    (share / expected - 1.0).abs() < 0.01,
                    "{alphas:?}: {shares:?}"
                );
            }
        }
    }

    #[test]
    fn one_lossless_queue_alone_on_a_leaf() {
        for (rules, pause) in [(RULES[0], 871), (RULES[1], 870)] {
            let changes = [rules, "buffer_bytes=1861760"];
            let mut bench = Bench::new(SONIC, &changes);
            assert_eq!(bench.fill(&[0], 1_048, 871).0, [pause], "{rules}");
        }
    }
}
