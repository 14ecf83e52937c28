//! Fig. 5: the largest burst without a lost packet, over its rate (App. A.8), and the same in the packet
//! simulator for Dynamic Threshold with congested ports.

mod packets;

use bufgym_eval::figures::Figure;
use bufgym_eval::figures::plot::{Curve, Plot};
use bufgym_eval::format;
use bufgym_eval::stats::Estimate;

use crate::claim::{Claim, Kind, Target};
use crate::fabric::FabricConfig;
use crate::report::{Panel, Table};
use crate::runs::PapersError;
use crate::sweep::stroke;
use crate::verdict::ascending;

use packets::{BUFFER, FULL, simulated};

/// Control factor of all priorities.
pub const ALPHA: f64 = 0.5;
/// Rates of the burst, in line rates.
const RATES: [f64; 9] = [1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 20.0];
/// Congested ports in panels a and c; congested queues of each of four ports in b and d.
const PORTS: [u32; 5] = [1, 2, 4, 8, 16];
const QUEUES: [u32; 4] = [1, 2, 4, 8];
const OF_PORTS: u32 = 4;
/// Packets by which the closed form and the simulator may differ.
const PACKETS: f64 = 2.0;

/// The policy that shares the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scheme {
    DynamicThreshold,
    Abm,
}

/// Congested queues before the burst, which has its own port and priority.
#[derive(Clone, Copy, Debug)]
struct Congestion {
    ports: u32,
    queues_per_port: u32,
}

/// Volume of a burst until its first loss, as a share of the buffer.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Tolerance {
    /// Volume that has arrived: `r t1`.
    arrived: f64,
    /// Volume in the queue at that time: `(r - γ) t1`.
    queued: f64,
}

/// Computes the closed form of App. A. The queues of a port share its line equally; rates of old queues are
/// taken as constant.
fn tolerance(scheme: Scheme, state: Congestion, rate: f64) -> Tolerance {
    let (ports, queues) = (f64::from(state.ports), f64::from(state.queues_per_port));
    // The burst drains at the line rate, the old queues together at that of their ports.
    let (drain, old_drain) = (1.0, ports);
    let own = ALPHA;
    let old = match scheme {
        Scheme::DynamicThreshold => ALPHA * ports * queues,
        // Each queue has α / n_p times the share of the line, over ports and queues: every queue of a port
        // has another priority, which is congested at all ports.
        Scheme::Abm => ports * queues * ALPHA / ports / queues,
    };
    let growth = rate - drain;
    let limit = drain + old_drain * (1.0 + old) / old;
    let t1 = match rate <= limit {
        true => own / (growth * (1.0 + old) + own * growth),
        false => own / ((1.0 + old) * (growth + own * (growth - old_drain))),
    };
    Tolerance {
        arrived: rate * t1,
        queued: growth * t1,
    }
}

/// The panels: identifier, letter, policy, and whether ports (instead of queues) are varied.
const PANELS: [(&str, &str, Scheme, bool); 4] = [
    ("5a", "a", Scheme::DynamicThreshold, true),
    ("5b", "b", Scheme::DynamicThreshold, false),
    ("5c", "c", Scheme::Abm, true),
    ("5d", "d", Scheme::Abm, false),
];

/// Returns the states of a panel with their names.
fn states(ports: bool) -> Vec<(String, Congestion)> {
    let named = |name: String, ports: u32, queues_per_port: u32| {
        let state = Congestion {
            ports,
            queues_per_port,
        };
        (name, state)
    };
    match ports {
        true => PORTS.map(|n| named(format!("{n} ports"), n, 1)).to_vec(),
        false => QUEUES
            .map(|n| named(format!("{n} queues"), OF_PORTS, n))
            .to_vec(),
    }
}

/// Makes the figure.
///
/// # Errors
/// Fails if the figure cannot be drawn.
pub fn figure(_: &FabricConfig) -> Result<Vec<(Panel, Vec<Claim>)>, PapersError> {
    PANELS.iter().map(|panel| make(*panel)).collect()
}

fn make(
    (id, letter, scheme, ports): (&'static str, &'static str, Scheme, bool),
) -> Result<(Panel, Vec<Claim>), PapersError> {
    let states = states(ports);
    let in_packets = scheme == Scheme::DynamicThreshold && ports;
    let mut farthest = 0.0_f64;
    let columns = ["series", "rate", "arrived", "queued", "queued_simulated"];
    let mut table = Table::new(&format!("fig{id}"), &columns);
    for (name, state) in &states {
        for rate in RATES {
            let closed = tolerance(scheme, *state, rate);
            let packets = in_packets.then(|| simulated(state.ports, rate));
            if let Some(packets) = packets {
                let apart = (packets - closed.queued).abs() * BUFFER as f64;
                farthest = farthest.max(apart / FULL as f64);
            }
            table.push(vec![
                name.clone(),
                rate.to_string(),
                closed.arrived.to_string(),
                closed.queued.to_string(),
                packets.map_or_else(String::new, |share| share.to_string()),
            ]);
        }
    }
    let panel = Panel {
        id,
        title: match (scheme, ports) {
            (Scheme::DynamicThreshold, true) => "burst tolerance of DT over congested ports",
            (Scheme::DynamicThreshold, false) => "burst tolerance of DT over queues per port",
            (Scheme::Abm, true) => "burst tolerance of ABM over congested ports",
            (Scheme::Abm, false) => "burst tolerance of ABM over queues per port",
        },
        method: method(in_packets),
        tables: vec![table],
        drawings: vec![drawing(id, scheme, &states)?],
    };
    let mut claims = vec![order(letter, scheme, &states)];
    if in_packets {
        claims.push(same_as_packets(letter, farthest));
    }
    Ok((panel, claims))
}

fn method(in_packets: bool) -> String {
    let how = if in_packets {
        format!(
            "Closed form, and the packet simulator fed at constant rates: packets of {FULL} B, {BUFFER} B \
             of buffer."
        )
    } else {
        "Closed form only: the simulator's sources of constant rate have one queue per port and no \
         priorities."
            .to_owned()
    };
    format!(
        "{how} α {ALPHA} throughout; the burst has a port and a priority of its own. The paper gives \
         neither α nor buffer. The main text counts what is in the queue, the appendix all that arrives: \
         the table has both, the drawing the latter."
    )
}

fn drawing(
    id: &str,
    scheme: Scheme,
    states: &[(String, Congestion)],
) -> Result<Figure, PapersError> {
    let curve = |(place, (name, state)): (usize, &(String, Congestion))| {
        let points = RATES.map(|rate| (rate, tolerance(scheme, *state, rate).arrived));
        Curve::new(name, stroke(place, false), points)
    };
    let curves: Vec<Curve> = states.iter().enumerate().map(curve).collect();
    let plot = Plot {
        name: &format!("fig{id}"),
        title: "Burst tolerance",
        description: "What a burst may bring until its first loss, over its rate.".to_owned(),
        curves: &curves,
        x: 0.0..21.0,
        x_label: "rate of the burst, line rates".to_owned(),
        x_tick: format::tick,
        y: 0.0..1.0,
        y_label: "burst / buffer",
        level: None,
    };
    Ok(plot.draw()?)
}

/// Claims that DT's tolerance falls with every state, and that ABM's does not, at any rate.
fn order(letter: &'static str, scheme: Scheme, states: &[(String, Congestion)]) -> Claim {
    let at = |rate: f64| -> Vec<Option<f64>> {
        let values = states.iter().rev();
        let values = values.map(|(_, state)| tolerance(scheme, *state, rate).arrived);
        values.map(Some).collect()
    };
    let falls = RATES.iter().all(|rate| ascending(&at(*rate)) == Some(true));
    let first_falls = |rate: &f64| {
        let values: Vec<f64> = at(*rate).into_iter().flatten().collect();
        values.windows(2).any(|pair| pair[0] < pair[1] - 1e-9)
    };
    let never_falls = !RATES.iter().any(first_falls);
    let (series, statement, words, right) = match scheme {
        Scheme::DynamicThreshold => (
            "DT",
            "Dynamic Threshold’s burst tolerance falls with the number of congested queues.",
            "falls at every rate",
            falls,
        ),
        Scheme::Abm => (
            "ABM",
            "ABM’s burst tolerance depends on the rate of the burst only.",
            "does not fall at any rate",
            never_falls,
        ),
    };
    let metric = "burst tolerance at twice the line rate in the last state, share of the buffer";
    let last = states
        .last()
        .map(|(_, state)| tolerance(scheme, *state, 2.0).arrived);
    Claim::order(("5", letter), series, metric, statement, words)
        .measured(last.map(Estimate::exact))
        .ranked(Some(right))
}

/// Claims that the closed form and the simulator agree within two packets.
fn same_as_packets(letter: &'static str, farthest: f64) -> Claim {
    Claim::number(
        ("5", letter),
        "DT",
        "largest difference of closed form and simulator, packets",
        "The packet simulator tolerates what the closed form says.",
        Target::AtMost(PACKETS),
    )
    .of_kind(Kind::Derived)
    .measured(Some(Estimate::exact(farthest)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(scheme: Scheme, ports: u32, queues_per_port: u32, rate: f64) -> Tolerance {
        let state = Congestion {
            ports,
            queues_per_port,
        };
        tolerance(scheme, state, rate)
    }

    #[test]
    fn a_slow_burst_gets_its_share_of_the_steady_state() {
        for ports in PORTS {
            let n = f64::from(ports);
            let tolerated = of(Scheme::DynamicThreshold, ports, 1, 1.5);
            assert!((tolerated.queued - ALPHA / (1.0 + ALPHA + n * ALPHA)).abs() < 1e-12);
            let tolerated = of(Scheme::Abm, ports, 3, 1.5);
            assert!((tolerated.queued - ALPHA / (1.0 + 2.0 * ALPHA)).abs() < 1e-12);
        }
    }

    #[test]
    fn the_two_cases_meet_at_the_limit_between_them() {
        for ports in PORTS {
            let old = ALPHA * f64::from(ports);
            let limit = 1.0 + f64::from(ports) * (1.0 + old) / old;
            let below = of(Scheme::DynamicThreshold, ports, 1, limit);
            let above = of(Scheme::DynamicThreshold, ports, 1, limit * (1.0 + 1e-9));
            assert!((below.queued - above.queued).abs() < 1e-6, "{ports}");
        }
    }

    #[test]
    fn the_simulator_tolerates_what_the_closed_form_says() {
        for (ports, rate) in [(1, 2.0), (4, 3.0), (1, 12.0), (8, 20.0)] {
            let closed = of(Scheme::DynamicThreshold, ports, 1, rate).queued;
            let apart = (simulated(ports, rate) - closed).abs() * BUFFER as f64 / FULL as f64;
            assert!(
                apart <= PACKETS,
                "{ports} ports, rate {rate}: {apart} packets"
            );
        }
    }
}
