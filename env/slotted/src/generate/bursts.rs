use super::{MAX_PACKETS, Setup, product};
use crate::{Arrivals, Packet, SlottedError};
use bufgym_sim::rng;

/// Bursts in the time in which one of them drains: rare enough for most to find the buffer empty,
/// and the rate at which 16 ports come nearest to the paper's figure.
const BURSTS_PER_DRAIN: f64 = 0.75;

/// Credence, Appendix D: bursts of the size of the buffer for ports drawn at random, which begin as
/// a Poisson process. A round is one burst.
///
/// The times between bursts are exponential with mean `1/burst-rate` slots, by default `4B/3`; the
/// packets of a burst arrive in one slot.
pub(super) fn arrivals(setup: &Setup) -> Result<Arrivals, SlottedError> {
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
        let port = rng::below(&mut random, u64::from(setup.ports)) as u32;
        if time >= Arrivals::MAX_SLOT as f64 {
            return setup.refuse(format_args!(
                "{} bursts at {rate} per slot last too long; take a larger burst-rate",
                setup.rounds
            ));
        }
        list.burst(Packet::unit(time as u64, port), setup.buffer, 0);
    }
    let end = list.packets.last().map_or(0, |packet| packet.slot + 1);
    Ok(Arrivals::constructed(list.packets, end, None, None))
}
