use super::{List, Setup, product};
use crate::arrivals::Prediction;
use crate::{Arrivals, Order, Packet, SlottedError};

/// Theorem 3: LWD in FIFO order waits for the packet at the head.
///
/// With `a = B/n` and `k = a^m`, every port gets one packet of work `k` and `a - 1` of work `k/a`;
/// when these could have been done, `a - 1` of work `k/a²`, and so on down to 1, then `a` of work
/// one. LWD works on the first packet all the time; the proof's schedule leaves it out. Every round
/// takes `k - 1 + a` slots and ends with empty buffers.
///
/// The ports take turns within a slot: in any other order LWD would push out of the ports that are
/// yet to come.
pub(super) fn arrivals(setup: &Setup) -> Result<Arrivals, SlottedError> {
    setup.needs_ports(1)?;
    let share = setup.share()?;
    let (work, steps) = work_and_steps(setup, share)?;
    let ports = u64::from(setup.ports);
    let length = work - 1 + share;
    let per_round = 1 + steps * (share - 1) + share;
    let mut list = setup.list(
        product(&[setup.rounds, ports, per_round]),
        product(&[setup.rounds, length]),
    )?;
    for round in 0..setup.rounds {
        let mut slot = round * length;
        for_every_port(&mut list, setup, slot, work, false);
        let mut size = work;
        for _ in 0..steps {
            size /= share;
            for _ in 1..share {
                for_every_port(&mut list, setup, slot, size, true);
            }
            slot += (share - 1) * size;
        }
        for _ in 0..share {
            for_every_port(&mut list, setup, slot, 1, true);
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
    Ok(Arrivals::constructed(
        list.packets,
        setup.rounds * length,
        Some(list.script),
        Some(prediction),
    ))
}

fn for_every_port(list: &mut List, setup: &Setup, slot: u64, work: u64, accepted: bool) {
    for port in 0..setup.ports {
        let work = work as u32;
        list.push(
            Packet {
                work,
                ..Packet::unit(slot, port)
            },
            accepted,
        );
    }
}

/// `k` and `log_a k`.
fn work_and_steps(setup: &Setup, share: u64) -> Result<(u64, u64), SlottedError> {
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
    let (mut work, mut steps) = (1, 0);
    while work < wanted && work <= most {
        work = product(&[work, share]).unwrap_or(u64::MAX);
        steps += 1;
    }
    if steps == 0 || work != wanted || work > most {
        return setup.refuse(format_args!(
            "max-work must be a power of B/N = {share} above 1, and at most {most}, found {wanted}"
        ));
    }
    Ok((work, steps))
}
