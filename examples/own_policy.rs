//! A policy of your own, next to DT, on one trace: `cargo run --release --example own_policy`.

use bufgym::sim::network::Simulator;
use bufgym::sim::scenario::Scenario;
use bufgym::sim::switch::{PacketView, Policy, PolicySpec, Verdict, View};
use bufgym::sim::traffic;
use bufgym::util::rng::{Split, trace_seed};

/// Dynamic Threshold with α = 8 that keeps room for one full packet per idle port.
struct Reserve;

impl Policy for Reserve {
    fn on_arrival(&mut self, view: View<'_>, packet: PacketView) -> Verdict {
        match self.threshold(view, packet.queue) {
            Some(threshold) if view.buffer.queue(packet.queue) < threshold => Verdict::Accept,
            _ => Verdict::Drop,
        }
    }

    fn threshold(&self, view: View<'_>, _queue: usize) -> Option<u64> {
        let idle = view
            .buffer
            .queues()
            .iter()
            .filter(|&&bytes| bytes == 0)
            .count() as u64;
        Some(8 * view.buffer.free().saturating_sub(idle * 1_518))
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let scenario = Scenario::preset("ndt-16x1g")?;
    let trace = traffic::generate(&scenario, trace_seed(Split::Train, 1, 0));
    let mine = Simulator::new(&scenario, &trace, Reserve)?.run().summary;
    let dt = PolicySpec::baseline().run(&scenario, &trace)?.summary;
    println!(
        "mean FCT: mine {:.3} ms, DT {:.3} ms",
        mine.mean_fct_ms, dt.mean_fct_ms
    );
    Ok(())
}
