//! Heap use of the simulator: nothing per packet, little per flow and environment.

use allocation_counter::measure;
use bufgym_env::control::{ControlEnv, ControlOptions, StopReason};
use bufgym_sim::network::{OneSwitch, Simulator};
use bufgym_sim::scenario::Scenario;
use bufgym_sim::switch::PolicySpec;
use bufgym_sim::traffic::{FlowSpec, Trace, generate};
use bufgym_sim::units::{Duration, Instant};
use bufgym_util::rng::{Split, trace_seed};

/// Hosts that receive; the others send.
const RECEIVERS: u64 = 4;

/// Heap bytes of a packet in the network.
const PACKET_BYTES: f64 = 32.0;

/// `count` flows from all other hosts to the first ones, `gap` apart.
fn flows(scenario: &Scenario, count: u64, size: u64, gap: Duration) -> Trace {
    let senders = u64::from(scenario.network.ports) - RECEIVERS;
    let flows = (0..count)
        .map(|id| FlowSpec {
            id,
            src: (RECEIVERS + id / RECEIVERS % senders) as u32,
            dst: (id % RECEIVERS) as u32,
            start: Instant::ZERO + gap * id,
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
    Scenario::default().with(|scenario| {
        scenario.tcp.max_cwnd_bytes = 200_000;
        scenario.tcp.min_rto_us = 10_000;
    })
}

fn simulator(scenario: &Scenario, policy: &str) -> Simulator {
    let trace = flows(scenario, 64, 1_000_000_000, Duration::from_us(10));
    let spec: PolicySpec = policy.parse().unwrap();
    spec.simulator::<OneSwitch>(scenario, &trace).unwrap()
}

/// Queues and stores grow by doubling and never shrink: once they have had their largest size,
/// packets cost no allocation.
#[test]
fn packets_allocate_nothing() {
    for policy in ["st", "cs", "dt", "edt"] {
        let scenario = capped().with(|scenario| {
            scenario.network.buffer_bytes = 1_000_000_000;
        });
        let mut simulator = simulator(&scenario, policy);
        steps(&mut simulator, 500_000);
        let forwarded = simulator.packets_forwarded();
        let heap = measure(|| steps(&mut simulator, 1_000_000));
        assert!(simulator.packets_forwarded() - forwarded > 200_000);
        assert_eq!(heap.count_total, 0, "{policy}: {heap:?}");
    }
}

/// Out-of-order data of a receiver is a list of ranges, which grows whenever it is longer than ever before. That
/// becomes rare.
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

/// In-cast queries in a small buffer: a flow that handles losses reuses the memory of flows that no longer need it.
#[test]
fn flows_that_come_and_lose_and_go_allocate_next_to_nothing() {
    for preset in ["ndt-16x1g", "ns3-16x1g"] {
        let scenario = Scenario::preset(preset).unwrap().with(|scenario| {
            scenario.network.buffer_bytes = 60_000;
            scenario.tcp.min_rto_us = 10_000;
        });
        let gap = Duration::from_us(250);
        let senders = u64::from(scenario.network.ports) - RECEIVERS;
        let mut trace = flows(&scenario, 12_000, 100_000, gap);
        for flow in &mut trace.flows {
            let query = flow.id / senders;
            flow.src = (RECEIVERS + flow.id % senders) as u32;
            flow.dst = (query % RECEIVERS) as u32;
            flow.start = Instant::ZERO + gap * (query * senders);
        }
        let mut simulator = PolicySpec::baseline()
            .simulator::<OneSwitch>(&scenario, &trace)
            .unwrap();
        let run_until = |simulator: &mut Simulator, flow: u64| {
            while simulator.now() < Instant::ZERO + gap * flow {
                assert!(simulator.step(), "the flows outlast the run");
            }
        };
        run_until(&mut simulator, 8_000);
        let drops = simulator.outcome().summary.drops;
        let heap = measure(|| run_until(&mut simulator, 11_000));
        let more = simulator.outcome().summary.drops - drops;
        println!("{preset}: {more} drops, {} allocations", heap.count_total);
        assert!(more > 30_000);
        assert!(heap.count_total <= 100, "{preset}: {heap:?}");
    }
}

/// Runs so many flows that never end, all of them active, without loss, each with one packet in the network. Returns
/// the bytes that the simulation takes from the heap apart from those packets.
fn bytes_of_active_flows(preset: &str, count: u64) -> f64 {
    let mut scenario = Scenario::preset(preset).unwrap().with(|scenario| {
        scenario.network.buffer_bytes = 1_000_000_000;
        scenario.tcp.init_cwnd = 1;
        scenario.tcp.min_rto_us = 100_000_000;
        scenario.tcp.handshake = false;
    });
    scenario.tcp.max_cwnd_bytes = u64::from(scenario.packets.mss);
    let trace = flows(&scenario, count, Trace::MAX_SIZE, Duration::from_ns(997));
    let mut simulator = None;
    let heap = measure(|| {
        let spec = PolicySpec::baseline();
        let simulator = simulator.insert(spec.simulator::<OneSwitch>(&scenario, &trace).unwrap());
        while simulator.packets_forwarded() < 20 * count {
            assert!(simulator.step());
        }
    });
    let mut simulator = simulator.unwrap();
    assert_eq!(simulator.active_flows().count() as u64, count);
    assert_eq!(simulator.outcome().summary.drops, 0);
    let packets: u32 = simulator.active_flows().map(|flow| flow.in_network).sum();
    assert_eq!(u64::from(packets), count);
    heap.bytes_current as f64 - f64::from(packets) * PACKET_BYTES
}

/// The difference leaves out memory that does not depend on the flows. The lists of timers and of active flows grow by
/// doubling and are full at powers of two. There is no handshake, because its two timers would wait for a while after
/// the start of a flow.
#[test]
fn an_active_flow_takes_less_than_two_hundred_bytes() {
    for preset in ["ndt-16x1g", "ns3-16x1g"] {
        let [few, many] = [1 << 13, 1 << 14].map(|count| bytes_of_active_flows(preset, count));
        let per_flow = (many - few) / f64::from(1 << 13);
        println!("{preset}: {per_flow:.1} bytes per active flow");
        assert!(
            per_flow < 200.0,
            "{preset}: {per_flow} bytes per active flow"
        );
    }
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
                if env.advance() == StopReason::Decision {
                    env.act(&action);
                }
            }
        }
    });
    println!("{:.1} MB at most", heap.bytes_max as f64 * 1e-6);
    assert!(heap.bytes_max < 200_000_000, "{heap:?}");
}
