//! A burst next to congested ports, packet by packet, from sources of constant rate.

use bufgym_sim::switch::policy::DynamicThreshold;
use bufgym_sim::switch::{Fate, OpenLoop};
use bufgym_sim::units::{Instant, Rate};
use bufgym_util::convert::floor_u64;

use super::ALPHA;

/// Bytes of a packet.
pub const FULL: u64 = 250;
/// Bytes of the buffer.
pub const BUFFER: u64 = 1_000_000;

const LINE: Rate = Rate(10_000_000_000);
/// Sources of congested ports send at this many line rates.
const OVERLOAD: u64 = 2;

/// A source of constant rate.
struct Source {
    start_ps: f64,
    gap_ps: f64,
    sent: u64,
}

impl Source {
    fn next(&self) -> Instant {
        Instant(floor_u64(self.start_ps + self.sent as f64 * self.gap_ps))
    }
}

/// Returns the length of the queue of a burst at `rate` line rates when it loses its first packet, as a share
/// of the buffer, under Dynamic Threshold with `congested` other ports at their thresholds.
pub fn simulated(congested: u32, rate: f64) -> f64 {
    let burst = congested as usize;
    let policy = DynamicThreshold { alpha: ALPHA };
    let mut switch = OpenLoop::new(burst + 1, BUFFER, LINE, policy);
    let mut sources = sources(congested, rate);
    loop {
        let next = (0..sources.len()).min_by_key(|port| sources[*port].next());
        let port = next.unwrap_or(burst);
        let arrival = switch.arrive(sources[port].next(), port, FULL);
        sources[port].sent += 1;
        if port == burst && matches!(switch.fates()[arrival], Fate::Lost(_)) {
            return switch.buffer().queue(burst) as f64 / BUFFER as f64;
        }
    }
}

/// Returns the sources of the congested ports, one after the other, and the source of the burst, which starts
/// once they are steady.
fn sources(congested: u32, rate: f64) -> Vec<Source> {
    let packet = LINE.transmission_time(FULL).0 as f64;
    let gap = packet / OVERLOAD as f64;
    // In this time a single source would fill three quarters of the buffer; a queue takes less than half.
    let steady = 0.75 * BUFFER as f64 / FULL as f64 * packet;
    let congesting = (0..congested).map(|port| Source {
        start_ps: gap * f64::from(port) / f64::from(congested),
        gap_ps: gap,
        sent: 0,
    });
    let burst = Source {
        start_ps: steady,
        gap_ps: packet / rate,
        sent: 0,
    };
    congesting.chain([burst]).collect()
}
