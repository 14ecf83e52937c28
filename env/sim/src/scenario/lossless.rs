//! A buffer with lossless packets: what follows from the settings, and what they must be.

use super::validate::Checks;
use super::{
    HostQueue, LosslessRules, Marking, PfcMode, Scenario, ScenarioError, Scheduler, SpinePool, Tier,
};
use crate::units::Rate;

/// Bytes on the line in 60 quanta of 512 bits, the response that a pause is usually allowed, and
/// twenty more: what the published code of Reverie adds to two packets and a round trip.
const RESPONSE_IN_NS3: u64 = 3_860;

/// Largest share of a port's line that headroom may stand for, bytes. Packets count in 16 bits, and a
/// terabit over 100 ms is 12.5 GB.
const MOST_HEADROOM: u64 = 100_000_000_000;

impl Scenario {
    /// Whether some packets are not to be lost.
    pub fn has_lossless(&self) -> bool {
        !self.lossless_priorities.is_empty()
    }

    /// Whether hosts send a packet of RDMA and one of TCP in turn, as the published code of Reverie has
    /// it, in place of a packet of each flow.
    pub(crate) fn hosts_alternate_classes(&self) -> bool {
        self.has_lossless() && self.rules == LosslessRules::Ns3
    }

    /// Bytes of the largest packet on the wire, of any class.
    pub(crate) fn largest_packet_bytes(&self) -> u64 {
        let kinds = self.transports().into_iter();
        let largest = kinds.map(|kind| self.full_packet_bytes_of(kind)).max();
        largest.unwrap_or(self.full_packet_bytes())
    }

    /// Bytes that can arrive at a port after the packet that makes it pause its neighbour: what crosses
    /// the link in a round trip and in the neighbour's response, a packet that has just begun in each
    /// direction, the pause frame, and the packet itself. `2 C d + C r + M + F + 2 M`.
    pub fn needed_headroom(&self, rate: Rate) -> u64 {
        let crossing = |ns: u64| {
            let bit_ns = u128::from(rate.0) * u128::from(ns);
            u64::try_from(bit_ns.div_ceil(8_000_000_000)).unwrap_or(u64::MAX)
        };
        let delay = crossing(2 * self.propagation_ns) + crossing(self.pfc_response_ns);
        delay + 3 * self.largest_packet_bytes() + u64::from(self.pfc_bytes)
    }

    /// As the published code of Reverie computes it: two packets, 3,860 B, and what crosses the link
    /// in a round trip.
    fn headroom_in_ns3(&self, rate: Rate) -> u64 {
        let bit_ns = u128::from(rate.0) * u128::from(2 * self.propagation_ns);
        let delay = u64::try_from(bit_ns / 8_000_000_000).unwrap_or(u64::MAX);
        2 * self.largest_packet_bytes() + RESPONSE_IN_NS3 + delay
    }

    /// Headroom of a port with this line and one lossless priority, bytes.
    pub fn port_headroom(&self, rate: Rate) -> u64 {
        match self.headroom_bytes {
            0 => self.needed_headroom(rate).max(self.headroom_in_ns3(rate)),
            bytes => bytes,
        }
    }

    /// Priorities of a port that headroom is set aside for.
    pub fn headroom_priorities(&self) -> u32 {
        match self.headroom_priorities {
            0 => self.lossless_priorities.count(),
            priorities => priorities,
        }
    }

    /// Headroom of a switch as it [sees](Scenario::at_switch) the scenario, bytes; `rates` are those of
    /// its ports.
    pub fn switch_headroom(&self, rates: impl Iterator<Item = Rate>) -> u64 {
        let priorities = u64::from(self.headroom_priorities());
        rates
            .map(|rate| priorities * self.port_headroom(rate))
            .sum()
    }

    /// Why the memory of a switch cannot be managed by port of arrival.
    pub(crate) fn unmanageable(&self) -> Option<String> {
        if self.device_fifo_packets > 0 || self.ecn_uncounted_packets > 0 {
            let needs = "it counts all packets of a queue; needs device_fifo_packets 0 and \
                         ecn_uncounted_packets 0";
            return Some(needs.to_owned());
        }
        (self.queues_per_port > 1 && self.scheduler != Scheduler::Rr).then(|| {
            format!(
                "it serves queues in turn; needs scheduler rr, found {}",
                self.scheduler
            )
        })
    }

    pub(super) fn validate_lossless(&self, check: &Checks<'_>) -> Result<(), ScenarioError> {
        check.within("headroom_bytes", self.headroom_bytes, 0, MOST_HEADROOM)?;
        let priorities = u64::from(self.headroom_priorities);
        check.within("headroom_priorities", priorities, 0, 8)?;
        for (field, share) in [
            ("lossy_pool_share", self.lossy_pool_share),
            ("lossless_pool_share", self.lossless_pool_share),
        ] {
            // In this form the condition is false for NaN too.
            if !(share > 0.0 && share <= 1.0) {
                return check.invalid(field, share, "must be above 0 and at most 1");
            }
        }
        check.within("xon_bytes", self.xon_bytes, 1, 1_000_000_000)?;
        check.within(
            "xoff_offset_bytes",
            self.xoff_offset_bytes,
            0,
            1_000_000_000,
        )?;
        check.within("pfc_quanta", u64::from(self.pfc_quanta), 1, 65_535)?;
        check.within("pfc_bytes", u64::from(self.pfc_bytes), 1, 1_000)?;
        check.within("pfc_response_ns", self.pfc_response_ns, 0, 1_000_000_000)?;
        check.within("pfc_watchdog_us", self.pfc_watchdog_us, 0, 100_000_000)?;
        match self.has_lossless() {
            true => self.validate_pools(check),
            false if self.marking == Marking::RedAtDequeue => check.invalid(
                "marking",
                self.marking,
                "needs lossless_priorities; must be step or red",
            ),
            false => Ok(()),
        }
    }

    fn validate_pools(&self, check: &Checks<'_>) -> Result<(), ScenarioError> {
        let lossless = self.lossless_priorities;
        let queues = self.queues_per_port as usize;
        if let Some(priority) = lossless.iter().find(|priority| *priority >= queues) {
            let problem = format!(
                "priority {priority} needs a queue of its own, and ports have queues_per_port = \
                 {queues}; must be below that"
            );
            return check.invalid("lossless_priorities", lossless, problem);
        }
        if self.device_fifo_packets > 0 || self.ecn_uncounted_packets > 0 {
            let problem = "pauses act on the queues themselves; needs device_fifo_packets 0 and \
                           ecn_uncounted_packets 0";
            return check.invalid("lossless_priorities", lossless, problem);
        }
        if self.spine_pool != SpinePool::Own {
            let problem = "headroom belongs to a switch; needs spine_pool own";
            return check.invalid("lossless_priorities", lossless, problem);
        }
        if self.host_queue != HostQueue::Fair {
            let problem = "a paused host sends what is not paused; needs host_queue fair";
            return check.invalid("lossless_priorities", lossless, problem);
        }
        self.validate_classes_of_loss(check)?;
        // A pause that is repeated before the line has sent a packet and the frame would end in between.
        let least = 2 * (self.largest_packet_bytes() + u64::from(self.pfc_bytes)).div_ceil(64);
        if self.pfc == PfcMode::Quanta && u64::from(self.pfc_quanta) < least {
            let problem = format!(
                "half of it must be as long as a packet and a pause frame; must be at least {least}"
            );
            return check.invalid("pfc_quanta", self.pfc_quanta, problem);
        }
        if self.headroom_priorities() < lossless.count() {
            let problem = format!(
                "{} priorities are lossless; must be 0 or as many",
                lossless.count()
            );
            return check.invalid("headroom_priorities", self.headroom_priorities, problem);
        }
        let tiers: &[Tier] = match self.is_fabric() {
            true => &[Tier::Leaf, Tier::Spine],
            false => &[Tier::Leaf],
        };
        for &tier in tiers {
            self.validate_pools_at(check, tier)?;
        }
        Ok(())
    }

    fn validate_pools_at(&self, check: &Checks<'_>, tier: Tier) -> Result<(), ScenarioError> {
        let at = match self.is_fabric() {
            true => self.at_switch(tier),
            false => self.clone(),
        };
        let headroom = self.switch_headroom(self.rates_of(tier));
        let least = headroom + self.largest_packet_bytes();
        if at.buffer_bytes < least {
            let problem = format!(
                "a {} sets {headroom} aside for headroom, which leaves less than a packet; must be at \
                 least {least}, or headroom_bytes smaller",
                tier.name()
            );
            return check.invalid("buffer_bytes", at.buffer_bytes, problem);
        }
        Ok(())
    }

    /// Rates of the ports of a switch.
    fn rates_of(&self, tier: Tier) -> impl Iterator<Item = Rate> {
        let (hosts, others) = match (tier, self.is_fabric()) {
            (_, false) => (self.ports as usize, 0),
            (Tier::Leaf, true) => (
                self.hosts_per_leaf as usize,
                crate::convert::index(self.uplinks()),
            ),
            (Tier::Spine, true) => (0, (self.leaves * self.links_per_pair) as usize),
        };
        let to_hosts = std::iter::repeat_n(self.rate(), hosts);
        to_hosts.chain(std::iter::repeat_n(self.fabric_rate(), others))
    }

    /// What is worth a warning, where packets are lossless: less headroom than can be needed.
    pub fn lossless_warning(&self) -> Option<String> {
        let rate = self.rate().max(self.fabric_rate());
        let needed = self.needed_headroom(rate);
        let short = self.has_lossless() && self.port_headroom(rate) < needed;
        short.then(|| {
            format!(
                "headroom_bytes is {}, and up to {needed} bytes can arrive after a pause: lossless \
                 packets may be lost",
                self.headroom_bytes
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 25 Gbit/s, 2 µs, packets of 1,048 B.
    fn scenario(changes: &[&str]) -> Scenario {
        let mut scenario = Scenario::default();
        let base = [
            "ports=4",
            "incast_degree=1..3",
            "active_ports=1..4",
            "rate_bps=25000000000",
            "propagation_ns=2000",
            "mss=1000",
            "header_bytes=48",
            "queues_per_port=4",
            "lossless_priorities=3",
            "buffer_bytes=2560000",
        ];
        for change in base.iter().chain(changes) {
            scenario.set(change).unwrap();
        }
        scenario
    }

    #[test]
    fn headroom_is_what_can_arrive_after_a_pause() {
        let rate = Rate(25_000_000_000);
        let scenario = scenario(&[]);
        assert_eq!(scenario.needed_headroom(rate), 15_708);
        assert_eq!(scenario.port_headroom(rate), 18_456);
        let slow = scenario_with_response();
        assert_eq!(slow.needed_headroom(rate), 15_708 + 3_125);
        assert_eq!(slow.port_headroom(rate), 18_833);
        assert_eq!(scenario.switch_headroom([rate; 3].into_iter()), 3 * 18_456);
    }

    fn scenario_with_response() -> Scenario {
        scenario(&["pfc_response_ns=1000"])
    }

    #[test]
    fn too_little_headroom_is_worth_a_warning() {
        assert_eq!(scenario(&[]).lossless_warning(), None);
        let warning = scenario(&["headroom_bytes=15707"])
            .lossless_warning()
            .unwrap();
        assert!(
            warning.contains("15707") && warning.contains("15708"),
            "{warning}"
        );
        assert_eq!(scenario(&["headroom_bytes=15708"]).lossless_warning(), None);
        assert_eq!(Scenario::default().lossless_warning(), None);
    }

    #[test]
    fn what_cannot_be_lossless_is_refused() {
        for (change, said) in [
            ("queues_per_port=3", "needs a queue of its own"),
            ("xon_bytes=0", "must be from 1"),
            ("host_queue=fifo", "needs host_queue fair"),
            ("headroom_bytes=640000", "leaves less than a packet"),
            ("lossy_pool_share=1.1", "must be above 0 and at most 1"),
            ("lossless_pool_share=nan", "must be above 0 and at most 1"),
        ] {
            let error = scenario(&[change]).validate().unwrap_err().to_string();
            assert!(error.contains(said), "{change}: {error}");
        }
        scenario(&[]).validate().unwrap();
        let quanta = |quanta: &str| scenario(&["pfc=quanta", quanta]).validate();
        let error = quanta("pfc_quanta=35").unwrap_err().to_string();
        assert!(error.contains("must be at least 36"), "{error}");
        quanta("pfc_quanta=36").unwrap();
        let mut none = Scenario::default();
        none.set("marking=red_at_dequeue").unwrap();
        none.set("ecn_red_kmax_bytes=1000").unwrap();
        let error = none.validate().unwrap_err().to_string();
        assert!(error.contains("needs lossless_priorities"), "{error}");
    }
}
