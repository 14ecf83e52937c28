//! A congestion control of your own, next to NewReno, on one trace: `cargo run --release --example own_transport`.

use bufgym::sim::network::Simulation;
use bufgym::sim::scenario::Scenario;
use bufgym::sim::switch::PolicySpec;
use bufgym::sim::traffic;
use bufgym::sim::transport::{Acked, CongestionControl, Settings, Window};
use bufgym::util::rng::{Split, trace_seed};

/// A window that follows the round-trip time: it grows by a segment per round trip while the queues on the path
/// delay a packet by less than `target` round trips, and shrinks by an eighth where they delay it by more.
#[derive(Clone, Debug)]
struct Delay {
    target: f64,
    /// First segment not yet sent when the window last changed.
    changed_at: u32,
}

impl CongestionControl for Delay {
    fn on_ack(&mut self, window: &mut Window, acked: &Acked<'_>, settings: &Settings) {
        if window.in_slow_start() {
            window.grow_in_slow_start(acked.segments, settings);
        }
        let Some(rtt) = acked.rtt.filter(|_| acked.una > self.changed_at) else {
            return;
        };
        self.changed_at = acked.next;
        if rtt.0 as f64 > (1.0 + self.target) * settings.base_rtt.0 as f64 {
            window.cwnd = (window.cwnd - window.cwnd / 8).max(2 * settings.mss);
            window.ssthresh = window.cwnd;
        } else if !window.in_slow_start() {
            window.grow(settings.mss, settings);
        }
    }

    fn ssthresh(&mut self, _window: &Window, flight: u32, settings: &Settings) -> u32 {
        (flight / 2).max(2 * settings.mss)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let scenario = Scenario::preset("ndt-16x1g")?;
    let trace = traffic::generate(&scenario, trace_seed(Split::Train, 1, 0));
    let simulation = || Simulation::new(&scenario, &trace, &PolicySpec::baseline());
    let mine = Delay {
        target: 20.0,
        changed_at: 0,
    };
    let mine = simulation()?.with_transport(&scenario, mine).run().summary;
    let newreno = simulation()?.run().summary;
    println!(
        "mean FCT: mine {:.3} ms, NewReno {:.3} ms",
        mine.mean_fct_ms, newreno.mean_fct_ms
    );
    Ok(())
}
