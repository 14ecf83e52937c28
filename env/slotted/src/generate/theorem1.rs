use super::{List, Setup, product};
use crate::arrivals::Prediction;
use crate::{Arrivals, Packet, SlottedError};

/// Theorem 1: LQD shares the buffer evenly between cheap packets and dear ones.
///
/// A round of `B - n + 1` slots begins with `B` packets of work 1 for the first port and `B` of
/// work `k` for every other. Every `k` slots each other port gets one more. LQD keeps `B/n`
/// packets for each port; the proof's schedule keeps `B - n + 1` of work 1 and one for each other.
pub(super) fn arrivals(setup: &Setup) -> Result<Arrivals, SlottedError> {
    setup.needs_ports(2)?;
    let share = setup.share()?;
    let others = u64::from(setup.ports) - 1;
    let least = (others * u64::from(setup.ports)).min(u64::from(Arrivals::MAX_WORK)) as u32;
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
        // Later their packets of the rounds before are still there.
        let kept = u64::from(round == 0);
        list.burst(Packet::unit(start, 0), setup.buffer, length);
        for port in 1..setup.ports {
            let packet = Packet {
                work,
                ..Packet::unit(start, port)
            };
            list.burst(packet, setup.buffer, kept);
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
    Ok(Arrivals::constructed(
        list.packets,
        end,
        Some(list.script),
        Some(prediction),
    ))
}

/// One packet for each port but the first at every multiple of the work before slot `until`.
fn add_trickle(list: &mut List, setup: &Setup, next: &mut u64, until: u64, work: u32) {
    while *next < until {
        for port in 1..setup.ports {
            list.push(
                Packet {
                    work,
                    ..Packet::unit(*next, port)
                },
                true,
            );
        }
        *next += u64::from(work);
    }
}
