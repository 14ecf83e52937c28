//! The constructions of the papers' proofs, and Poisson bursts.
//!
//! Theorems are those of the traffic-parameters paper, with `n` ports and a buffer of `B` packets.

use bufgym_util::convert::floor_u64;
use bufgym_util::rng;

use super::{List, MAX_PACKETS, Setup, product};
use crate::arrivals::Prediction;
use crate::{Arrivals, Order, Packet, SlottedError};

/// Theorem 1: LQD shares the buffer evenly between packets of little and of much work.
///
/// A round of `B - n + 1` slots begins with `B` packets of work 1 for the first port and `B` of work
/// `k` for every other. Every `k` slots each other port gets one more packet. LQD keeps `B/n` packets
/// of each port. The proof's schedule keeps `B - n + 1` packets of the first port and one packet of
/// each other port.
pub(super) fn theorem1(setup: &Setup) -> Result<Arrivals, SlottedError> {
    setup.check_ports(2)?;
    let share = setup.share()?;
    let others = u64::from(setup.ports) - 1;
    let least = u32::try_from(others * u64::from(setup.ports)).unwrap_or(u32::MAX);
    let least = least.min(Arrivals::MAX_WORK);
    let work = setup.options.max_work.unwrap_or(least);
    if !(1..=Arrivals::MAX_WORK).contains(&work) {
        return setup.refuse(format_args!(
            "max-work must be from 1 to {}, found {work}",
            Arrivals::MAX_WORK
        ));
    }
    let length = setup.buffer - others;
    let period = u64::from(work);
    let end = product(&[setup.rounds, length]);
    let packets = product(&[
        setup.rounds,
        u64::from(setup.ports),
        setup.buffer + length / period + 1,
    ]);
    let mut list = setup.list(packets, end)?;

    let mut trickle = period;
    for round in 0..setup.rounds {
        let start = round * length;
        add_trickle(&mut list, setup, &mut trickle, start + 1, work);
        // In later rounds the schedule still holds packets of the other ports.
        let kept = u64::from(round == 0);
        list.burst(Packet::unit(start, 0), setup.buffer, length);
        for port in 1..setup.ports {
            list.burst(Packet::with_work(start, port, work), setup.buffer, kept);
        }
        add_trickle(&mut list, setup, &mut trickle, start + length, work);
    }

    let end = setup.rounds * length;
    let slow = others * (end / period);
    let optimum = end + slow;
    let n = f64::from(setup.ports);
    let (b, l) = (setup.buffer as f64, length as f64);
    let slow_rate = (n - 1.0) * l / f64::from(work);
    let prediction = Prediction {
        theorem: "Theorem 1",
        policies: &["lqd"],
        order: None,
        algorithm: setup.rounds * share + slow,
        optimum,
        paper: (l + slow_rate) / (b / n + slow_rate),
    };
    Ok(list.arrivals(end, prediction))
}

/// Adds one packet for each port but the first at every multiple of `work` before slot `until`.
/// `next` is the first multiple that has no packets yet.
fn add_trickle(list: &mut List, setup: &Setup, next: &mut u64, until: u64, work: u32) {
    while *next < until {
        for port in 1..setup.ports {
            list.push(Packet::with_work(*next, port, work), true);
        }
        *next += u64::from(work);
    }
}

/// Theorem 2: BPD and BAD starve the ports of larger packets.
///
/// Every slot brings `B` packets of work 1 for the first port, then `B` of work 2 for every other;
/// a round is two slots. BPD and BAD keep `B` packets of work 1; the proof's schedule keeps one
/// packet of each port.
pub(super) fn theorem2(setup: &Setup) -> Result<Arrivals, SlottedError> {
    setup.check_ports(2)?;
    let ports = u64::from(setup.ports);
    let slots = product(&[setup.rounds, 2]);
    let mut list = setup.list(product(&[setup.rounds, 2, ports, setup.buffer]), slots)?;
    let end = 2 * setup.rounds;
    for slot in 0..end {
        list.burst(Packet::unit(slot, 0), setup.buffer, 1);
        for port in 1..setup.ports {
            let kept = u64::from(slot % 2 == 0);
            list.burst(Packet::with_work(slot, port, 2), setup.buffer, kept);
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
    Ok(list.arrivals(end, prediction))
}

/// Theorem 3: LWD in FIFO order waits for the packet at the head.
///
/// Let `a = B/n` and `k = a^m`. Every port gets one packet of work `k` and `a - 1` of work `k/a`. After
/// the time that the latter take, it gets `a - 1` of work `k/a²`, and so on down to work 1, and finally
/// `a` packets of work 1. LWD always works on the first packet; the proof's schedule does not accept
/// it. A round takes `k - 1 + a` slots and ends with an empty buffer.
///
/// Within a slot the ports take turns. If all packets of one port came first, LWD would push out
/// packets of the other ports.
pub(super) fn theorem3(setup: &Setup) -> Result<Arrivals, SlottedError> {
    setup.check_ports(1)?;
    let share = setup.share()?;
    let (work, steps) = work_and_steps(setup, share)?;
    let ports = u64::from(setup.ports);
    let length = u64::from(work) - 1 + share;
    let per_round = 1 + steps * (share - 1) + share;
    let mut list = setup.list(
        product(&[setup.rounds, ports, per_round]),
        product(&[setup.rounds, length]),
    )?;
    for round in 0..setup.rounds {
        let mut slot = round * length;
        one_per_port(&mut list, setup, slot, work, false);
        let mut size = u64::from(work);
        for _ in 0..steps {
            size /= share;
            let work = u32::try_from(size).expect("less than the first work");
            for _ in 1..share {
                one_per_port(&mut list, setup, slot, work, true);
            }
            slot += (share - 1) * size;
        }
        for _ in 0..share {
            one_per_port(&mut list, setup, slot, 1, true);
        }
    }
    let prediction = Prediction {
        theorem: "Theorem 3",
        policies: &["lwd"],
        order: Some(Order::Fifo),
        algorithm: setup.rounds * setup.buffer,
        optimum: setup.rounds * (ports * (share - 1) * steps + setup.buffer),
        paper: steps as f64 * (1.0 - ports as f64 / setup.buffer as f64) + 1.0,
    };
    Ok(list.arrivals(setup.rounds * length, prediction))
}

/// Adds one packet for each port.
fn one_per_port(list: &mut List, setup: &Setup, slot: u64, work: u32, accepted: bool) {
    for port in 0..setup.ports {
        list.push(Packet::with_work(slot, port, work), accepted);
    }
}

/// Returns the largest work `k`, and `log_a k` for `a = share`.
fn work_and_steps(setup: &Setup, share: u64) -> Result<(u32, u64), SlottedError> {
    if share < 2 {
        return setup.refuse(format_args!(
            "needs a buffer of at least two packets per port, found {} packets for {} ports",
            setup.buffer, setup.ports
        ));
    }
    let most = u64::from(Arrivals::MAX_WORK);
    let squared = product(&[share, share]).unwrap_or(u64::MAX);
    let wanted = match setup.options.max_work {
        Some(work) => u64::from(work),
        None if squared <= most => squared,
        None => share,
    };
    let (mut work, mut steps) = (1_u64, 0);
    while work < wanted && work <= most {
        work = product(&[work, share]).unwrap_or(u64::MAX);
        steps += 1;
    }
    match u32::try_from(work) {
        Ok(fitting) if steps > 0 && work == wanted && work <= most => Ok((fitting, steps)),
        _ => setup.refuse(format_args!(
            "max-work must be a power of B/N = {share} above 1, and at most {most}, found {wanted}"
        )),
    }
}

/// Theorem 6: MTVD fills the buffer with packets of the largest value, which are all for one port.
///
/// A round of `B/n` slots begins with `B` packets of value `V` for the first port and `B` of value
/// `V - 1` for every other. MTVD keeps those of the first port. The proof's schedule keeps `B/n` of
/// each port.
pub(super) fn theorem6(setup: &Setup) -> Result<Arrivals, SlottedError> {
    setup.check_ports(2)?;
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
            list.burst(Packet::with_value(slot, port, value), setup.buffer, share);
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
    Ok(list.arrivals(end, prediction))
}

/// Theorem 7: MRD keeps packets of value 1 because their queues are short.
///
/// Let `m = B - V² + 1`. A round of `B` slots begins with two packets of value 1 for each of `m - 1`
/// ports, then `B` packets of value `V` for one more port. The proof's schedule keeps the packets of
/// value `V`.
///
/// The proof says that MRD keeps `V` packets of value `V` and `m - 1` of value 1. Together these
/// are fewer than `B`, but a buffer that is not full loses nothing. Two packets of value 1 in a
/// queue give a ratio of 2, so MRD pushes them out until it has `2V` packets of value `V`, as long
/// as such queues are left. The prediction counts `2V`; its ratio tends to the paper's `V` as `B`
/// grows beyond `V²`.
pub(super) fn theorem7(setup: &Setup) -> Result<Arrivals, SlottedError> {
    setup.check_ports(2)?;
    let (value, cheap_ports) = value_and_cheap_ports(setup)?;
    let buffer = setup.buffer;
    let mut list = setup.list(
        product(&[setup.rounds, 2 * cheap_ports + buffer]),
        product(&[setup.rounds, buffer]),
    )?;
    let dear_port = u32::try_from(cheap_ports).expect("fewer than ports");
    for round in 0..setup.rounds {
        let slot = round * buffer;
        for port in 0..dear_port {
            list.burst(Packet::unit(slot, port), 2, 0);
        }
        list.burst(Packet::with_value(slot, dear_port, value), buffer, buffer);
    }
    let v = u64::from(value);
    let dear = kept_by_mrd(buffer, v, cheap_ports);
    let prediction = Prediction {
        theorem: "Theorem 7",
        policies: &["mrd"],
        order: None,
        algorithm: setup.rounds * (dear * v + buffer - dear),
        optimum: setup.rounds * buffer * v,
        paper: v as f64,
    };
    Ok(list.arrivals(setup.rounds * buffer, prediction))
}

/// Packets of value `V` that MRD keeps when those of value 1 came first.
fn kept_by_mrd(buffer: u64, value: u64, cheap_ports: u64) -> u64 {
    let cheap = buffer.min(2 * cheap_ports);
    let free = buffer - cheap;
    let pairs = cheap / 2;
    let while_pairs_last = free.max((2 * value).min(free + pairs));
    while_pairs_last.max(value.min(buffer))
}

/// The largest value `V`, and the number of ports with packets of value 1, `m - 1`.
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

/// Credence, Observation 1: LQD pushes packets out of a long queue, FollowLQD cannot.
///
/// The first slot brings `B` packets for the first port. A round is two slots: one packet for every
/// port in order, then `N` packets for the first port. FollowLQD transmits one packet per slot. The
/// proof's schedule keeps the buffer free for the ports that get one packet.
pub(super) fn followlqd_lower_bound(setup: &Setup) -> Result<Arrivals, SlottedError> {
    setup.check_ports(2)?;
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
    Ok(list.arrivals(1 + 2 * setup.rounds, prediction))
}

/// Bursts in the time that one burst takes to drain. At this rate most bursts find the buffer empty,
/// and 16 ports come nearest to the paper's figure.
const BURSTS_PER_DRAIN: f64 = 0.75;

/// Credence, Appendix D: bursts of `B` packets, each for one port drawn at random, at the times of a
/// Poisson process. A round is one burst.
///
/// The times between bursts are exponential with mean `1/burst-rate` slots, by default `4B/3`. All
/// packets of a burst arrive in one slot.
pub(super) fn poisson_bursts(setup: &Setup) -> Result<Arrivals, SlottedError> {
    let default = BURSTS_PER_DRAIN / setup.buffer as f64;
    let rate = setup.options.burst_rate.unwrap_or(default);
    if !(rate.is_finite() && rate > 0.0) {
        return setup.refuse(format_args!("burst-rate must be above 0, found {rate}"));
    }
    let packets = product(&[setup.rounds, setup.buffer]).filter(|p| *p <= MAX_PACKETS);
    let mut list = setup.list(packets, Some(0))?;
    let mut random = rng::stream(setup.options.seed, "slotted bursts", 0);
    let mut time = 0.0;
    for _ in 0..setup.rounds {
        time -= libm::log(1.0 - rng::uniform(&mut random)) / rate;
        let port = rng::below(&mut random, u64::from(setup.ports));
        let port = u32::try_from(port).expect("below the number of ports");
        if time >= Arrivals::MAX_SLOT as f64 {
            return setup.refuse(format_args!(
                "{} bursts at {rate} per slot last too long; take a larger burst-rate",
                setup.rounds
            ));
        }
        list.burst(Packet::unit(floor_u64(time), port), setup.buffer, 0);
    }
    let end = list.packets.last().map_or(0, |packet| packet.slot + 1);
    Ok(Arrivals::constructed(list.packets, end, None, None))
}
