use super::{Setup, product};
use crate::arrivals::Prediction;
use crate::{Arrivals, Packet, SlottedError};

/// Credence, Observation 1: FollowLQD's queue stays where LQD's has been cut.
///
/// The first slot brings `B` packets for one port. A round is two slots: one packet for every port,
/// that port first, then `N` packets for that port. FollowLQD transmits one packet per slot; the
/// proof's schedule keeps the buffer free for the ports that get one packet.
pub(super) fn arrivals(setup: &Setup) -> Result<Arrivals, SlottedError> {
    setup.needs_ports(2)?;
    let ports = u64::from(setup.ports);
    let packets = product(&[setup.rounds, 2, ports]).and_then(|p| p.checked_add(setup.buffer));
    let mut list = setup.list(packets, product(&[setup.rounds, 2]))?;
    list.burst(Packet::unit(0, 0), setup.buffer, 1);
    for round in 0..setup.rounds {
        let slot = 1 + 2 * round;
        for port in 0..setup.ports {
            list.push(Packet::unit(slot, port), true);
        }
        list.burst(Packet::unit(slot + 1, 0), ports, 1);
    }
    let prediction = Prediction {
        theorem: "Observation 1",
        policies: &["followlqd"],
        order: None,
        algorithm: 1 + 2 * setup.rounds,
        optimum: 1 + (ports + 1) * setup.rounds,
        paper: (f64::from(setup.ports) + 1.0) / 2.0,
    };
    Ok(Arrivals::constructed(
        list.packets,
        1 + 2 * setup.rounds,
        Some(list.script),
        Some(prediction),
    ))
}
