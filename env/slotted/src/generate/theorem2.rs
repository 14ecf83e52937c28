use super::{Setup, product};
use crate::arrivals::Prediction;
use crate::{Arrivals, Packet, SlottedError};

/// Theorem 2: BPD and BAD starve the ports of larger packets.
///
/// Every slot brings `B` packets of work 1 for the first port, then `B` of work 2 for every other;
/// a round is two slots. BPD and BAD keep `B` packets of work 1; the proof's schedule keeps one
/// packet of each port.
pub(super) fn arrivals(setup: &Setup) -> Result<Arrivals, SlottedError> {
    setup.needs_ports(2)?;
    let ports = u64::from(setup.ports);
    let slots = product(&[setup.rounds, 2]);
    let mut list = setup.list(product(&[setup.rounds, 2, ports, setup.buffer]), slots)?;
    let end = 2 * setup.rounds;
    for slot in 0..end {
        list.burst(Packet::unit(slot, 0), setup.buffer, 1);
        for port in 1..setup.ports {
            let packet = Packet {
                work: 2,
                ..Packet::unit(slot, port)
            };
            list.burst(packet, setup.buffer, u64::from(slot % 2 == 0));
        }
    }
    let prediction = Prediction {
        theorem: "Theorem 2",
        policies: &["bpd", "bad"],
        order: None,
        algorithm: end,
        optimum: end + (ports - 1) * setup.rounds,
        paper: (f64::from(setup.ports) + 1.0) / 2.0,
    };
    Ok(Arrivals::constructed(
        list.packets,
        end,
        Some(list.script),
        Some(prediction),
    ))
}
