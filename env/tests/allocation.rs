//! What the simulator takes from the heap: nothing per packet, little per flow and environment.

use allocation_counter::measure;
use bufgym_env::control::{ControlEnv, ControlOptions, Pause};
use bufgym_env::network::Simulator;
use bufgym_env::rng::{Split, trace_seed};
use bufgym_env::scenario::Scenario;
use bufgym_env::switch::PolicySpec;
use bufgym_env::traffic::{FlowSpec, Trace, generate};
use bufgym_env::units::Time;

/// Hosts that receive; the others send.
const RECEIVERS: u64 = 4;

/// `count` flows from all other hosts to the first ones, `gap` apart.
fn flows(scenario: &Scenario, count: u64, size: u64, gap: Time) -> Trace {
    let senders = u64::from(scenario.ports) - RECEIVERS;
    let flows = (0..count)
        .map(|id| FlowSpec {
            id,
            src: (RECEIVERS + id / RECEIVERS % senders) as u32,
            dst: (id % RECEIVERS) as u32,
            start: Time(id * gap.as_ps()),
            size,
            kind: 0,
            query: -1,
            priority: 0,
        })
        .collect();
    Trace {
        flows,
        kinds: vec!["flow".to_owned()],
        seed: 0,
    }
}

fn steps(simulator: &mut Simulator, count: usize) {
    for _ in 0..count {
        assert!(simulator.step(), "the flows outlast the run");
    }
}

/// The window is capped so that queues have a largest size; in the default buffer all windows
/// together still cause losses.
fn capped() -> Scenario {
    Scenario {
        max_cwnd_bytes: 200_000,
        min_rto_us: 10_000,
        ..Scenario::default()
    }
}

fn simulator(scenario: &Scenario, policy: &str) -> Simulator {
    let trace = flows(scenario, 64, 1_000_000_000, Time::from_us(10));
    let spec: PolicySpec = policy.parse().unwrap();
    spec.simulator(scenario, &trace).unwrap()
}

/// Queues and stores grow by doubling and never shrink: once they have had their largest size,
/// packets cost no allocation.
#[test]
fn packets_allocate_nothing() {
    for policy in ["st", "cs", "dt", "edt"] {
        let scenario = Scenario {
            buffer_bytes: 1_000_000_000,
            ..capped()
        };
        let mut simulator = simulator(&scenario, policy);
        steps(&mut simulator, 500_000);
        let forwarded = simulator.packets_forwarded();
        let heap = measure(|| steps(&mut simulator, 1_000_000));
        assert!(simulator.packets_forwarded() - forwarded > 200_000);
        assert_eq!(heap.count_total, 0, "{policy}: {heap:?}");
    }
}

/// What a receiver holds out of order is a list of ranges, which grows whenever it sets a record;
/// records become rare.
#[test]
fn losses_allocate_next_to_nothing() {
    for policy in ["st", "cs", "dt", "edt"] {
        let mut simulator = simulator(&capped(), policy);
        steps(&mut simulator, 8_000_000);
        let drops = simulator.outcome().summary.drops;
        let heap = measure(|| steps(&mut simulator, 1_000_000));
        assert!(simulator.outcome().summary.drops - drops > 1_000);
        assert!(heap.count_total <= 10, "{policy}: {heap:?}");
    }
}

/// A flow that waits for its start takes as much as an active one.
#[test]
fn a_flow_takes_little_memory() {
    let scenario = Scenario::default();
    let bytes = |count| {
        let trace = flows(&scenario, count, 100_000, Time::from_us(1));
        let heap = measure(|| {
            let simulator = PolicySpec::BASELINE.simulator(&scenario, &trace).unwrap();
            std::mem::forget(simulator);
        });
        heap.bytes_current as f64
    };
    let per_flow = (bytes(20_000) - bytes(10_000)) / 10_000.0;
    println!("{per_flow:.0} bytes per flow");
    assert!(per_flow <= 380.0, "{per_flow} bytes per flow");
}

/// 32 environments in training, their traces, queues and histories included.
#[test]
fn many_environments_fit_into_memory() {
    let scenario = Scenario::default();
    let heap = measure(|| {
        let mut envs: Vec<ControlEnv> = (0..32)
            .map(|index| {
                let trace = generate(&scenario, trace_seed(Split::Train, 1, index));
                ControlEnv::new(&scenario, &trace, &ControlOptions::default()).unwrap()
            })
            .collect();
        for env in &mut envs {
            let action = vec![0.9; env.ports()];
            for _ in 0..200 {
                if env.advance() == Pause::Decision {
                    env.act(&action);
                }
            }
        }
    });
    println!("{:.1} MB at most", heap.bytes_max as f64 * 1e-6);
    assert!(heap.bytes_max < 200_000_000, "{heap:?}");
}
