//! Switches with packets of one size.

use bufgym_sim::scenario::Scenario;
use bufgym_sim::switch::{AnyPolicy, Fate, Loss, OpenLoop, Policy, PolicySpec};
use bufgym_sim::units::{Duration, Instant, Rate};

/// Bytes of a packet.
pub const PACKET: u64 = 1_250;
/// Line rate, at which a packet takes 10 µs.
pub const RATE: Rate = Rate(1_000_000_000);
/// Time that a line needs for a packet.
pub const SLOT: Duration = Duration::from_us(10);

/// Returns the instant at which slot `slot` begins.
pub fn slot(slot: u64) -> Instant {
    Instant::ZERO + SLOT * slot
}

/// Returns a scenario of that switch, for policies whose parameters depend on it.
pub fn scenario(ports: u32, buffer_bytes: u64) -> Scenario {
    let mut scenario = Scenario::default().with(|scenario| {
        scenario.network.ports = ports;
        scenario.network.buffer_bytes = buffer_bytes;
        scenario.network.rate_bps = RATE.0;
    });
    scenario.packets.mss = (PACKET - u64::from(scenario.packets.header_bytes)) as u32;
    scenario
}

/// Returns an empty switch for `packets` packets.
pub fn of<P: Policy>(ports: u32, packets: u64, policy: P) -> OpenLoop<P> {
    OpenLoop::new(ports as usize, packets * PACKET, RATE, policy)
}

/// Returns an empty switch under a policy by name.
pub fn named(ports: u32, packets: u64, policy: &str) -> OpenLoop<AnyPolicy> {
    let spec: PolicySpec = policy.parse().expect("a policy of the catalogue");
    let policy = spec.build(&scenario(ports, packets * PACKET));
    of(ports, packets, policy.expect("parameters that fit"))
}

/// Fills queues with packets at the instant zero; each queue's first one is in service.
pub fn fill<P: Policy>(switch: &mut OpenLoop<P>, packets: &[u64]) {
    for (port, &count) in packets.iter().enumerate() {
        for _ in 0..count {
            switch.arrive(Instant::ZERO, port, PACKET);
        }
    }
    assert_eq!(lengths(switch), packets);
}

/// Returns the number of packets in every queue.
pub fn lengths<P: Policy>(switch: &OpenLoop<P>) -> Vec<u64> {
    let queues = switch.buffer().queues().iter();
    queues.map(|bytes| bytes / PACKET).collect()
}

/// Returns the number of arrivals that were lost with this reason.
pub fn lost<P: Policy>(switch: &OpenLoop<P>, loss: Loss) -> usize {
    let fates = switch.fates().iter();
    fates.filter(|fate| **fate == Fate::Lost(loss)).count()
}
