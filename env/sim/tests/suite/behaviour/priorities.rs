//! The queues of a port: the queue that each packet takes, and the control factor of each queue.

use bufgym_sim::network::{HostObserver, Observer, OneSwitch, Simulator, SwitchId, SwitchObserver};
use bufgym_sim::scenario::Scenario;
use bufgym_sim::switch::{PacketView, PolicySpec, View};
use bufgym_sim::traffic::{FlowSpec, Trace, generate};
use bufgym_sim::units::{Duration, Instant};

fn scenario(changes: &[&str]) -> Scenario {
    let mut scenario = Scenario::default();
    for change in changes {
        scenario.set(change).unwrap();
    }
    scenario.validate().unwrap();
    scenario
}

/// Returns flows of 200 kB from two hosts to port 0.
fn trace(priority: u8) -> Trace {
    let flow = |src: u32| FlowSpec {
        id: u64::from(src),
        src,
        dst: 0,
        start: Instant::ZERO,
        size: 200_000,
        kind: 0,
        query: -1,
        priority,
    };
    Trace {
        flows: vec![flow(1), flow(2)],
        ..Trace::default()
    }
}

fn simulator(policy: &str, scenario: &Scenario, trace: &Trace) -> Simulator {
    let policy: PolicySpec = policy.parse().unwrap();
    policy.simulator::<OneSwitch>(scenario, trace).unwrap()
}

/// Counts of full packets, and of others, that came to each of the three queues of their port.
#[derive(Default, Debug)]
struct Places([[u64; 2]; 3]);

impl SwitchObserver for Places {
    fn arriving(&mut self, _at: SwitchId, _view: View<'_>, packet: PacketView) {
        let small = usize::from(packet.bytes < 100);
        self.0[packet.queue % 3][small] += 1;
    }
}

impl HostObserver for Places {}
impl Observer for Places {}

fn places(changes: &[&str]) -> [[u64; 2]; 3] {
    let settings = [&["queues_per_port=3", "handshake=true"], changes].concat();
    let mut simulator =
        simulator("dt", &scenario(&settings), &trace(1)).observed(Places::default());
    simulator.run();
    simulator.observer().0
}

#[test]
fn packets_without_data_take_their_own_queue() {
    let with_data = places(&[]);
    assert_eq!([with_data[0], with_data[2]], [[0, 0]; 2]);
    for queue in 0..3 {
        let mut apart = places(&[&format!("ack_queue={queue}")]);
        let acks = std::mem::take(&mut apart[queue][1]);
        assert!(apart[1][0] >= 274, "{apart:?}");
        // SYN, its answer, the acknowledgement of that, and one for nearly every segment.
        assert!(acks > 270, "{acks}");
        apart[1] = [0, 0];
        assert_eq!(apart, [[0, 0]; 3]);
    }
}

#[test]
fn every_queue_has_its_control_factor() {
    let settings = ["queues_per_port=2", "queue_alpha=4,0.25"];
    let scenario = scenario(&settings);
    for policy in ["dt", "abm", "fab", "edt", "tdt", "ib", "occamy"] {
        let simulator = simulator(policy, &scenario, &trace(0));
        let switch = simulator.switch(SwitchId(0));
        let threshold = |queue| switch.threshold(queue, Instant::ZERO);
        let [first, second] = [4_000_000, 250_000].map(Some);
        assert_eq!(threshold(0), first, "{policy}");
        assert_eq!(threshold(1), second, "{policy}");
        assert_eq!([threshold(30), threshold(31)], [first, second], "{policy}");
    }
    let error = |policy: &str| {
        let policy: PolicySpec = policy.parse().unwrap();
        policy.build(&scenario).unwrap_err().to_string()
    };
    for policy in ["dt:alpha=8", "abm:alphas=1/2", "fab:alpha=2"] {
        let error = error(policy);
        assert!(error.contains("both given; leave one out"), "{error}");
    }
    // Other policies have no such factor.
    for policy in ["cs", "st", "lqd", "harmonic"] {
        simulator(policy, &scenario, &trace(0)).run();
    }
}

/// Parameters derived from α follow from the α in force, whatever sets it, also at each of several
/// queues.
#[test]
fn a_factor_of_the_scenario_is_as_one_of_the_policy() {
    let settings = [
        "transport=cubic",
        "min_rto_us=1000",
        "flows=40",
        "load=0.9",
        "ports=8",
        "active_ports=4",
        "incast_degree=1..7",
        "buffer_bytes=100000",
    ];
    let run = |policy: &str, more: &[&str]| {
        let scenario = scenario(&[&settings[..], more].concat());
        let outcome = simulator(policy, &scenario, &generate(&scenario, 7)).run();
        (outcome.summary.mean_fct_ms.to_bits(), outcome.summary.drops)
    };
    for policy in [
        "dt",
        "abm",
        "abm:estimate=artefact",
        "fab",
        "edt",
        "tdt",
        "ib",
        "occamy",
    ] {
        let join = if policy.contains(':') { ',' } else { ':' };
        for alpha in [0.25, 2.0] {
            let own = run(&format!("{policy}{join}alpha={alpha}"), &[]);
            let given = format!("queue_alpha={alpha}");
            assert_eq!(run(policy, &[&given]), own, "{policy} {alpha}");
            // All flows are in the second queue.
            let queues = [
                "queues_per_port=2",
                "flow_priority=fixed",
                "demand=uniform",
                "measure_ms=40",
            ];
            let own = run(&format!("{policy}{join}alpha={alpha}"), &queues);
            let given = format!("queue_alpha={alpha},{alpha}");
            assert_eq!(
                run(policy, &[&queues[..], &[&given]].concat()),
                own,
                "{policy} {alpha}"
            );
        }
    }
}

#[test]
fn factors_decide_what_is_lost() {
    let drops = |alpha: &str| {
        let alpha = format!("queue_alpha=1,{alpha}");
        let settings = ["queues_per_port=2", "buffer_bytes=100000", &alpha];
        let scenario = scenario(&settings);
        simulator("dt", &scenario, &trace(1)).run().summary.drops
    };
    assert_ne!(drops("0.1"), drops("8"));
    let equal = ["queues_per_port=2", "queue_alpha=0.5,0.5"];
    let one = ["queues_per_port=2"];
    let fcts = |policy: &str, settings: &[&str]| {
        let outcome = simulator(policy, &scenario(settings), &trace(1)).run();
        outcome.summary.mean_fct_ms
    };
    assert_eq!(fcts("dt", &equal), fcts("dt:alpha=0.5", &one));
}

/// Without slow start the window grows by a segment per round trip.
#[test]
fn without_slow_start_windows_grow_slowly() {
    let fct = |slow_start: bool| {
        let setting = format!("slow_start={slow_start}");
        let scenario = scenario(&[&setting, "propagation_ns=1000000"]);
        let flow = FlowSpec {
            size: 1_460 * 100,
            ..trace(0).flows[0]
        };
        let trace = Trace {
            flows: vec![flow],
            ..Trace::default()
        };
        simulator("dt", &scenario, &trace).run().records[0]
            .fct
            .unwrap()
    };
    // 10 + 20 + 40 + 80 segments, and 10 + 11 + … + 17.
    let round_trips = |fct: Duration| fct.0 / Duration::from_ms(4).0;
    assert_eq!(round_trips(fct(true)), 3);
    assert_eq!(round_trips(fct(false)), 7);
}
