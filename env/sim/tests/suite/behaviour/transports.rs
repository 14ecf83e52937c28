//! Effects of the transports' options in whole simulations.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bufgym_sim::network::{OneSwitch, Outcome, Simulator, Summary};
use bufgym_sim::scenario::Scenario;
use bufgym_sim::switch::{PacketView, Policy, PolicySpec, Verdict, View};
use bufgym_sim::traffic::{FlowSpec, Trace, generate};
use bufgym_sim::transport::{Acked, CongestionControl, NewReno, Settings, Window};
use bufgym_sim::units::{Duration, Instant};

fn scenario(settings: &[&str]) -> Scenario {
    let mut scenario = Scenario::default();
    for setting in settings {
        scenario.set(setting).unwrap();
    }
    scenario
}

fn flow(id: u64, src: u32, start: Instant, size: u64) -> FlowSpec {
    FlowSpec {
        id,
        src,
        dst: 0,
        start,
        size,
        kind: 0,
        query: -1,
        priority: 0,
    }
}

fn trace(flows: Vec<FlowSpec>) -> Trace {
    Trace {
        flows,
        kinds: vec!["flow".to_owned()],
        seed: 0,
    }
}

/// Returns one flow of `segments` full segments.
fn lone(segments: u64) -> Trace {
    trace(vec![flow(0, 1, Instant::ZERO, 1_460 * segments)])
}

/// Returns two flows of 5 MB to one port.
fn competing() -> Trace {
    two_of(5_000_000)
}

fn two_of(bytes: u64) -> Trace {
    let flows = (1..3).map(|src| flow(u64::from(src), src, Instant::ZERO, bytes));
    trace(flows.collect())
}

fn run(settings: &[&str], policy: &str, trace: &Trace) -> Outcome {
    let policy: PolicySpec = policy.parse().unwrap();
    policy.run(&scenario(settings), trace).unwrap()
}

#[test]
fn delayed_acknowledgements_are_fewer_and_slow_nothing_down_but_the_odd_segment() {
    let each = run(&[], "dt", &lone(1_000));
    let every_second = run(&["delayed_ack=2"], "dt", &lone(1_000));
    // When the flow is complete, the last acknowledgements are still in flight. These are two if the
    // one before reaches its host less than a propagation delay later.
    assert_eq!(each.summary.packets_forwarded, 1_998);
    assert_eq!(every_second.summary.packets_forwarded, 1_499);
    assert_eq!(every_second.summary.timeouts, 0);
    let fct = |outcome: &Outcome| outcome.summary.mean_fct_ms;
    assert!((fct(&every_second) / fct(&each) - 1.0).abs() < 0.01);
}

/// The last, odd segment is acknowledged when the delay is over: otherwise the sender would retransmit
/// it.
#[test]
fn an_odd_segment_is_acknowledged_before_the_sender_loses_patience() {
    for min_rto in ["min_rto_us=200000", "min_rto_us=10000"] {
        let outcome = run(&["delayed_ack=2", min_rto], "dt", &lone(7));
        assert_eq!(outcome.summary.timeouts, 0, "{min_rto}");
        assert_eq!(outcome.summary.completed, 1);
    }
}

#[test]
fn marks_keep_the_queue_of_dctcp_short_and_its_line_busy() {
    let newreno = run(&[], "cs", &competing());
    let dctcp = run(&["transport=dctcp"], "cs", &competing());
    assert_eq!(newreno.summary.marks, 0);
    assert!(dctcp.summary.marks > 0);
    let queue = |outcome: &Outcome| outcome.summary.max_occupancy_bytes;
    assert!(
        queue(&dctcp) * 4 < queue(&newreno),
        "{} {}",
        queue(&dctcp),
        queue(&newreno)
    );
    assert_eq!(dctcp.summary.drops, 0);
    // 10 MB take 83 ms at 1 Gbit/s with their headers.
    let end = dctcp
        .records
        .iter()
        .filter_map(|record| record.finish)
        .max();
    assert!(end.unwrap() < Instant::from_ms(88), "{end:?}");
}

#[test]
fn marks_are_heeded_by_every_transport() {
    for transport in ["newreno", "cubic", "dctcp"] {
        let transport = format!("transport={transport}");
        for sack in ["sack=true", "sack=false"] {
            let settings = [&transport, sack, "ecn_threshold_bytes=30000"];
            let outcome = run(&settings, "cs", &competing());
            assert!(outcome.summary.marks > 0, "{settings:?}");
            assert_eq!(outcome.summary.drops, 0, "{settings:?}");
        }
    }
}

/// A threshold beyond the buffer marks nothing and has no effect.
#[test]
fn a_threshold_out_of_reach_changes_nothing() {
    let plain = run(&[], "dt", &competing());
    let marking = run(&["ecn_threshold_bytes=1000000"], "dt", &competing());
    assert_eq!(marking.summary.marks, 0);
    let finish = |outcome: &Outcome| -> Vec<_> {
        outcome.records.iter().map(|record| record.finish).collect()
    };
    assert_eq!(finish(&plain), finish(&marking));
}

/// HyStart needs rounds in which the delay grows: a buffer of many bandwidth-delay products.
#[test]
fn hystart_leaves_slow_start_earlier() {
    let settings = [
        "transport=cubic",
        "propagation_ns=1000000",
        "buffer_bytes=10000000",
    ];
    let late = run(&settings, "cs", &competing());
    let early = run(
        &[&settings[..], &["hystart=true"]].concat(),
        "cs",
        &competing(),
    );
    let queue = |outcome: &Outcome| outcome.summary.max_occupancy_bytes;
    assert!(
        queue(&early) * 10 < queue(&late) * 9,
        "{} {}",
        queue(&early),
        queue(&late)
    );
}

/// The train of acknowledgements ends slow start in a case where HyStart++ detects nothing and a window
/// that doubles fills the buffer.
#[test]
fn hystart_of_linux_leaves_slow_start_before_delay_has_grown_by_milliseconds() {
    let largest = |settings: &[&str]| {
        let settings = [&["transport=cubic", "buffer_bytes=1000000"], settings].concat();
        let outcome = run(&settings, "cs", &competing());
        outcome.summary.max_occupancy_bytes
    };
    let without = largest(&[]);
    assert_eq!(
        largest(&["hystart=true"]),
        without,
        "no round trip has 4 ms more"
    );
    let early = largest(&["hystart=true", "hystart_rule=linux"]);
    assert!(early * 3 < without, "{early} {without}");
}

/// A receiver that acknowledges every second segment slows slow start down, unless acknowledgements are
/// counted by the segments that they cover.
#[test]
fn slow_start_limit_makes_up_for_delayed_acknowledgements() {
    let end = |settings: &[&str]| {
        let settings = [&["propagation_ns=1000000"], settings].concat();
        let outcome = run(&settings, "cs", &lone(300));
        outcome.records[0].finish.unwrap()
    };
    for transport in ["newreno", "cubic", "dctcp"] {
        let transport = format!("transport={transport}");
        let every = end(&[&transport]);
        assert_eq!(
            end(&[&transport, "slow_start_limit=2"]),
            every,
            "{transport}"
        );
        let slow = end(&[&transport, "delayed_ack=2"]);
        let counted = end(&[&transport, "delayed_ack=2", "slow_start_limit=2"]);
        assert!(counted < slow, "{transport}: {counted} {slow}");
        // The number of round trips is the same, except for the wait of the first acknowledgements.
        assert!(
            counted < every + Duration::from_ms(4),
            "{transport}: {counted} {every}"
        );
    }
}

/// Complete sharing that drops chosen packets by the order of their arrival.
struct Dropping {
    arrivals: usize,
    victims: Vec<usize>,
}

impl Policy for Dropping {
    fn on_arrival(&mut self, _view: View<'_>, _packet: PacketView) -> Verdict {
        self.arrivals += 1;
        if self.victims.contains(&(self.arrivals - 1)) {
            return Verdict::Drop;
        }
        Verdict::Accept
    }

    fn threshold(&self, _view: View<'_>, _port: usize) -> Option<u64> {
        None
    }
}

/// Returns the time from start to establishment if the packets with these numbers are dropped.
fn handshake_without(victims: &[usize]) -> Duration {
    let scenario = scenario(&["handshake=true", "syn_timeout_us=3000"]);
    let policy = Dropping {
        arrivals: 0,
        victims: victims.to_vec(),
    };
    let mut simulator = Simulator::new(&scenario, &lone(3), policy).unwrap();
    let outcome = simulator.run();
    assert_eq!(outcome.summary.completed, 1);
    outcome.records[0].established.unwrap() - Instant::ZERO
}

#[test]
fn a_lost_syn_or_syn_ack_is_sent_again_with_the_timeout_doubling() {
    let undisturbed = handshake_without(&[]);
    // Packet 0 is the SYN, packet 1 the SYN-ACK.
    let syn = handshake_without(&[0]);
    assert_eq!(syn, undisturbed + Duration::from_us(3_000));
    assert_eq!(handshake_without(&[0, 1]), syn + Duration::from_us(6_000));
    // Both ends miss an answer. The receiver's timer started later, and its answer may come first or
    // not, but one timeout is enough.
    let syn_ack = handshake_without(&[1]);
    assert!(syn_ack > Duration::from_us(3_000) && syn_ack <= syn);
}

/// Congestion is marked for hosts that have agreed to it, and for no others (RFC 3168, section 5).
#[test]
fn data_is_marked_only_between_hosts_that_use_ecn() {
    let scenario = scenario(&["flows=60"]);
    let trace = generate(&scenario, 1);
    let run = |policy: &str, ecn: bool| {
        let scenario = scenario.clone().with(|scenario| {
            scenario.marking.ecn = ecn;
        });
        let spec: PolicySpec = policy.parse().unwrap();
        let simulator = spec.simulator::<OneSwitch>(&scenario, &trace);
        simulator.map(|mut simulator| simulator.run().summary)
    };
    let [mark, drop] = ["dt+red:action=mark", "dt+red:action=drop"];
    let (marked, dropped) = (run(mark, true).unwrap(), run(drop, true).unwrap());
    assert!(marked.marks > 0 && dropped.marks == 0);
    let without = run(mark, false).unwrap();
    assert_eq!(without.marks, 0);
    let facts = |summary: &Summary| (summary.drops, summary.mean_fct_ms);
    assert_eq!(facts(&without), facts(&dropped));
    assert!(run("dt+step", true).unwrap().marks > 0);
    let refused = run("dt+step", false).unwrap_err().to_string();
    assert!(refused.contains("ecn=true"), "{refused}");
}

/// Early drop that marks and keeps the marks of the scenario. If it marks nothing itself, or only the
/// same packets, the switch behaves as without it. A packet that both mark counts once.
#[test]
fn early_drop_can_keep_the_marks_of_the_scenario() {
    let in_cast = trace(
        (0..8)
            .map(|id| flow(id, 1 + id as u32, Instant::from_us(37 * id), 2_000_000))
            .collect(),
    );
    let run = |management: &str| {
        let settings = ["transport=dctcp", "ecn_threshold_bytes=30000"];
        run(&settings, &format!("cs+{management}"), &in_cast).summary
    };
    let facts = |summary: &Summary| (summary.marks, summary.drops, summary.mean_fct_ms);
    let plain = run("none");
    assert!(plain.marks > 100);
    let never = "early:action=mark,gap=2,min_bytes=1000000";
    assert_eq!(facts(&run(&format!("{never},keep=yes"))), facts(&plain));
    assert_eq!(run(never).marks, 0);
    let same = "early:action=mark,gap=2,min_bytes=30000,spare=no";
    assert_eq!(facts(&run(&format!("{same},keep=yes"))), facts(&plain));
    assert_ne!(run(same).marks, plain.marks);
    let seldom = "early:action=mark,gap=1024,min_bytes=10000";
    assert!(run(&format!("{seldom},keep=yes")).marks > 10 * run(seldom).marks);
}

/// With `keep=long` the scenario's marks skip the first bytes of flows that FAB knows, and nothing
/// else. Without such a policy all marks are set, and if every flow is short none is.
#[test]
fn early_drop_can_keep_the_marks_on_long_flows() {
    let flows = |bytes| {
        let flows = (0..8).map(|id| flow(id, 1 + id as u32, Instant::from_us(37 * id), bytes));
        trace(flows.collect())
    };
    let run = |policy: &str, keep: &str, bytes| {
        let settings = ["transport=dctcp", "ecn_threshold_bytes=30000"];
        let management = format!("early:action=mark,gap=2,min_bytes=1000000,keep={keep}");
        run(&settings, &format!("{policy}+{management}"), &flows(bytes)).summary
    };
    let facts = |summary: &Summary| (summary.marks, summary.drops, summary.mean_fct_ms);
    let [shared, all] = ["long", "yes"].map(|keep| run("cs", keep, 2_000_000));
    assert!(all.marks > 100);
    assert_eq!(facts(&shared), facts(&all));
    let fab = "fab:alpha=64,short_bytes=100000,idle_us=1000000";
    let [long, all] = ["long", "yes"].map(|keep| run(fab, keep, 2_000_000));
    assert!(long.marks > 100 && long.mean_fct_ms != all.mean_fct_ms);
    let [long, all] = ["long", "yes"].map(|keep| run(fab, keep, 90_000));
    assert!(all.marks > 100 && long.marks == 0);
}

/// Phase effects (Floyd and Jacobson, 1992). Twelve flows from three hosts keep a queue full. The
/// packet that comes first after a departure always does, and other flows lose everything in flight
/// until their timers expire. Jitter of a packet time at the hosts makes them take turns.
#[test]
fn jitter_at_the_hosts_lets_locked_out_flows_in() {
    let timeouts = |jitter: u64| -> u64 {
        let jitter = format!("host_jitter_ns={jitter}");
        let with_gaps = |more: u64| {
            let flows = (0..12).map(|id| {
                let start = Instant::from_us((37 + more) * id);
                flow(id, 1 + (id % 3) as u32, start, 2_000_000)
            });
            let settings = ["transport=linux", "buffer_bytes=120000", &jitter];
            run(&settings, "cs", &trace(flows.collect()))
                .summary
                .timeouts
        };
        (0..6).map(with_gaps).sum()
    };
    let (without, with) = (timeouts(0), timeouts(12_000));
    assert!(with * 4 < without * 3, "{with} {without}");
}

/// One segment through an otherwise empty network: the flow is complete with its last byte.
#[test]
fn jitter_delays_a_lone_segment_by_no_more_than_its_bound_and_hosts_differ() {
    let finish = |jitter: u64, dst: u32| {
        let jitter = format!("host_jitter_ns={jitter}");
        let mut lone = lone(1);
        lone.flows[0].src = 15 - dst;
        lone.flows[0].dst = dst;
        run(&[&jitter], "dt", &lone).records[0].finish.unwrap()
    };
    let mut delays = Vec::new();
    for dst in 0..15 {
        let (without, with) = (finish(0, dst), finish(5_000, dst));
        assert_eq!(finish(5_000, dst), with);
        assert!(
            without <= with && with <= without + Duration::from_us(5),
            "{with}"
        );
        delays.push(with - without);
    }
    delays.sort_unstable();
    delays.dedup();
    assert_eq!(delays.len(), 15);
}

/// A forked run continues exactly like the original.
#[test]
fn a_fork_has_the_jitter_of_its_original() {
    let mut scenario = scenario(&["host_jitter_ns=7000"]);
    scenario.set("flows=40").unwrap();
    let trace = generate(&scenario, 11);
    let policy: PolicySpec = "dt".parse().unwrap();
    let mut original = policy.simulator::<OneSwitch>(&scenario, &trace).unwrap();
    for _ in 0..20_000 {
        original.step();
    }
    assert!(original.packets_are_placed_once());
    let mut fork = original.clone();
    let finish = |outcome: Outcome| -> Vec<_> {
        outcome.records.iter().map(|record| record.finish).collect()
    };
    assert_eq!(finish(original.run()), finish(fork.run()));
}

/// NewReno, which also counts the acknowledgements that carry records of switches.
#[derive(Clone, Debug, Default)]
struct Watched {
    newreno: NewReno,
    records: Arc<AtomicUsize>,
}

impl CongestionControl for Watched {
    fn reads_telemetry(&self) -> bool {
        true
    }

    fn on_ack(&mut self, window: &mut Window, acked: &Acked<'_>, settings: &Settings) {
        let records = acked.path.map_or(0, |path| path.hops().len());
        self.records.fetch_add(records, Ordering::Relaxed);
        self.newreno.on_ack(window, acked, settings);
    }

    fn ssthresh(&mut self, window: &Window, flight: u32, settings: &Settings) -> u32 {
        self.newreno.ssthresh(window, flight, settings)
    }
}

/// A caller's congestion control that does what NewReno does has its results, also where another one is named, in
/// handshakes, and for answers on connections that exist already.
#[test]
fn a_congestion_control_of_a_caller_replaces_the_named_one() {
    for more in [&["handshake=true"][..], &["preconnected=true"]] {
        let settings = [&["flows=60..60"], more].concat();
        let named = scenario(&settings);
        let other = scenario(&[&settings[..], &["transport=cubic"]].concat());
        let trace = generate(&named, 3);
        let finishes = |outcome: Outcome| -> Vec<Option<Instant>> {
            outcome.records.iter().map(|record| record.finish).collect()
        };
        let simulator = |scenario: &Scenario| {
            let dt = PolicySpec::baseline();
            dt.simulator::<OneSwitch>(scenario, &trace).unwrap()
        };
        let watched = Watched::default();
        let expected = finishes(simulator(&named).run());
        let own = simulator(&other).with_transport(&other, watched.clone());
        assert_eq!(finishes({ own }.run()), expected);
        assert!(watched.records.load(Ordering::Relaxed) > 1_000);
        assert_ne!(finishes(simulator(&other).run()), expected);
    }
}
