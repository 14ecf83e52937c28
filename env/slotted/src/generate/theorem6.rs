use super::{Setup, product};
use crate::arrivals::Prediction;
use crate::{Arrivals, Packet, SlottedError};

/// Theorem 6: MTVD fills the buffer with the largest value, all of one port.
///
/// A round of `B/n` slots begins with `B` packets of value `V` for the first port and `B` of value
/// `V - 1` for every other. MTVD keeps those of the first port; the proof's schedule keeps `B/n` of
/// each.
pub(super) fn arrivals(setup: &Setup) -> Result<Arrivals, SlottedError> {
    setup.needs_ports(2)?;
    let share = setup.share()?;
    let ports = u64::from(setup.ports);
    let value = setup
        .options
        .max_value
        .unwrap_or(setup.ports.clamp(2, Arrivals::MAX_WORK));
    if !(2..=Arrivals::MAX_WORK).contains(&value) {
        return setup.refuse(format_args!(
            "max-value must be from 2 to {}, found {value}",
            Arrivals::MAX_WORK
        ));
    }
    let mut list = setup.list(
        product(&[setup.rounds, ports, setup.buffer]),
        product(&[setup.rounds, share]),
    )?;
    for round in 0..setup.rounds {
        let slot = round * share;
        for port in 0..setup.ports {
            let value = value - u32::from(port > 0);
            list.burst(
                Packet {
                    value,
                    ..Packet::unit(slot, port)
                },
                setup.buffer,
                share,
            );
        }
    }
    let end = setup.rounds * share;
    let v = u64::from(value);
    let prediction = Prediction {
        theorem: "Theorem 6",
        policies: &["mtvd"],
        order: None,
        algorithm: end * v,
        optimum: end * (v + (v - 1) * (ports - 1)),
        paper: (v * ports - (ports - 1)) as f64 / v as f64,
    };
    Ok(Arrivals::constructed(
        list.packets,
        end,
        Some(list.script),
        Some(prediction),
    ))
}
