use super::{Setup, product};
use crate::arrivals::Prediction;
use crate::{Arrivals, Packet, SlottedError};

/// Theorem 7: MRD keeps cheap packets because their queues are short.
///
/// With `m = B - V² + 1`, a round of `B` slots begins with two packets of value 1 for each of
/// `m - 1` ports, then `B` of value `V` for one more. The proof's schedule keeps the latter.
///
/// The proof says that MRD keeps `V` of them and `m - 1` cheap ones. Together that is less than
/// `B`, and a buffer that is not full loses nothing: two packets of value 1 in a queue give a ratio
/// of 2, so MRD goes on until it has `2V`, as long as such queues are left. The prediction counts
/// that; its ratio tends to the paper's `V` as `B` grows beyond `V²`.
pub(super) fn arrivals(setup: &Setup) -> Result<Arrivals, SlottedError> {
    setup.needs_ports(2)?;
    let (value, cheap_ports) = value_and_cheap_ports(setup)?;
    let buffer = setup.buffer;
    let mut list = setup.list(
        product(&[setup.rounds, 2 * cheap_ports + buffer]),
        product(&[setup.rounds, buffer]),
    )?;
    let dear_port = cheap_ports as u32;
    for round in 0..setup.rounds {
        let slot = round * buffer;
        for port in 0..dear_port {
            list.burst(Packet::unit(slot, port), 2, 0);
        }
        let packet = Packet {
            value,
            ..Packet::unit(slot, dear_port)
        };
        list.burst(packet, buffer, buffer);
    }
    let v = u64::from(value);
    let dear = dear_packets_of_mrd(buffer, v, cheap_ports);
    let prediction = Prediction {
        theorem: "Theorem 7",
        policies: &["mrd"],
        order: None,
        algorithm: setup.rounds * (dear * v + buffer - dear),
        optimum: setup.rounds * buffer * v,
        paper: v as f64,
    };
    Ok(Arrivals::constructed(
        list.packets,
        setup.rounds * buffer,
        Some(list.script),
        Some(prediction),
    ))
}

/// Packets of value `V` that MRD keeps when the cheap ones came first.
fn dear_packets_of_mrd(buffer: u64, value: u64, cheap_ports: u64) -> u64 {
    let cheap = buffer.min(2 * cheap_ports);
    let free = buffer - cheap;
    let pairs = cheap / 2;
    let while_pairs_last = free.max((2 * value).min(free + pairs));
    while_pairs_last.max(value.min(buffer))
}

/// `V` and `m - 1`.
fn value_and_cheap_ports(setup: &Setup) -> Result<(u32, u64), SlottedError> {
    let cheap_ports = |value: u32| {
        let squared = u64::from(value) * u64::from(value);
        setup
            .buffer
            .checked_sub(squared)
            .filter(|ports| *ports >= 1)
    };
    let fits = |value: u32| cheap_ports(value).is_some_and(|m| m < u64::from(setup.ports));
    let value = match setup.options.max_value {
        Some(value) => Some(value),
        None => (2..=Arrivals::MAX_WORK)
            .take_while(|value| cheap_ports(*value).is_some())
            .find(|value| fits(*value)),
    };
    let (n, b) = (setup.ports, setup.buffer);
    match value {
        Some(value) if (2..=Arrivals::MAX_WORK).contains(&value) && fits(value) => {
            Ok((value, cheap_ports(value).unwrap_or_default()))
        }
        Some(value) => setup.refuse(format_args!(
            "max-value must be at least 2, its square below the buffer, and the ports at least B - V² + 1; found V = {value}, B = {b}, {n} ports"
        )),
        None => setup.refuse(format_args!(
            "needs at least B - V² + 1 ports for a value V of 2 or more whose square is below the buffer; found B = {b}, {n} ports"
        )),
    }
}
