//! Every switch of a network under control.

use bufgym_sim::network::{LeafSpine, Topology as _};

use super::*;

type Fabric = ControlEnv<LeafSpine>;

/// A trace of a small network with small buffers.
fn network(changes: &[&str]) -> (Scenario, Trace) {
    let mut scenario = Scenario::preset("leafspine-4x4").unwrap();
    let small = [
        "measure_ms=20",
        "query_rate=400",
        "buffer_bytes_per_port_gbps=2",
    ];
    for change in small.iter().chain(changes) {
        scenario.set(change).unwrap();
    }
    let trace = generate(&scenario, 7);
    (scenario, trace)
}

fn options(objective: &str) -> ControlOptions {
    ControlOptions {
        objective: objective.parse().unwrap(),
        tau_s: 1e9,
        ..ControlOptions::default()
    }
}

/// Runs to the end with the same α everywhere. Calls `paid` with a switch and the discount of its
/// interval from time zero, at the end of every interval.
fn play(env: &mut Fabric, alpha: usize, mut paid: impl FnMut(&Fabric, SwitchId)) -> StopReason {
    loop {
        let stop = env.advance();
        if stop != StopReason::Decision {
            for switch in (0..env.switches()).map(switch_id) {
                paid(env, switch);
            }
            return stop;
        }
        paid(env, env.at());
        let action = vec![cell_centre(alpha); env.ports()];
        env.act(&action);
    }
}

/// With the same α at all ports of all switches the control is Dynamic Threshold.
#[test]
fn a_fixed_alpha_at_every_switch_is_dynamic_threshold() {
    let (scenario, trace) = network(&[]);
    let mut controller = FixedAlpha::new(2);
    let options = RunOptions::default();
    let controlled = run_controlled(&scenario, &trace, &mut controller, &options).unwrap();
    let by_policy = PolicySpec::baseline().run(&scenario, &trace).unwrap();
    let fcts =
        |outcome: &Outcome| -> Vec<_> { outcome.records.iter().map(|record| record.fct).collect() };
    assert_eq!(fcts(&controlled), fcts(&by_policy));
    assert_eq!(controlled.summary.drops, by_policy.summary.drops);
    assert!(
        controlled.summary.drops > 0 && controlled.summary.decisions > 100,
        "{:?}",
        controlled.summary
    );

    let mut env = Fabric::in_network(&scenario, &trace, &ControlOptions::default()).unwrap();
    assert_eq!(play(&mut env, 2, |_, _| ()), StopReason::Finished);
    let decisions: Vec<u64> = (0..6).map(|s| env.decisions_of(SwitchId(s))).collect();
    assert!(decisions.iter().all(|&count| count > 0), "{decisions:?}");
    assert_eq!(decisions.iter().sum::<u64>(), controlled.summary.decisions);
    let forked = network(&[]);
    let mut env = Fabric::in_network(&forked.0, &forked.1, &ControlOptions::default()).unwrap();
    assert_eq!(env.advance(), StopReason::Decision);
    let mut fork = env.clone();
    play(&mut env, 5, |_, _| ());
    play(&mut fork, 5, |_, _| ());
    assert_eq!(fcts(&env.outcome()), fcts(&fork.outcome()));
    assert_ne!(fcts(&env.outcome()), fcts(&controlled));
}

/// A decision changes the α of its own switch alone.
#[test]
fn a_decision_is_that_of_one_switch() {
    let (scenario, trace) = network(&[]);
    let mut env = Fabric::in_network(&scenario, &trace, &ControlOptions::default()).unwrap();
    assert_eq!(env.advance(), StopReason::Decision);
    let first = env.at();
    env.act(&vec![cell_centre(6); env.ports()]);
    while env.advance() == StopReason::Decision && env.at() == first {
        env.act(&vec![cell_centre(6); env.ports()]);
    }
    for switch in env.simulator().switches() {
        let expected = if switch.id() == first { 6 } else { 2 };
        assert!(
            switch
                .policy()
                .indices()
                .iter()
                .all(|&level| level == expected)
        );
    }
}

/// Every flow counts at all switches on its path, in equal parts that add up to the whole flow.
#[test]
fn undiscounted_rewards_of_all_switches_add_up() {
    let (scenario, trace) = network(&["demand=uniform"]);
    let leaf = |host: u32| host / 4;
    assert!(
        trace
            .flows
            .iter()
            .any(|flow| leaf(flow.src) == leaf(flow.dst))
    );
    let sum = |objective: &str| {
        let options = options(objective);
        let mut env = Fabric::in_network(&scenario, &trace, &options).unwrap();
        let mut sum = 0.0;
        let stop = play(&mut env, 2, |env, switch| {
            let scale = &env.agents[switch.index()].reward_scale;
            let price = scale.flow_time_price() + scale.slowdown_price();
            sum -= env.reward_of(switch).total / price;
        });
        assert_eq!(stop, StopReason::Finished);
        (sum, env.outcome())
    };
    let (seconds, outcome) = sum("fct");
    let fcts = outcome.records.iter().map(|record| record.fct.unwrap());
    let expected: f64 = fcts.map(Duration::as_secs_f64).sum();
    assert!(
        (seconds / expected - 1.0).abs() < 1e-4,
        "{seconds} {expected}"
    );
    let (slowdowns, outcome) = sum("slowdown");
    let expected: f64 = outcome.records.iter().filter_map(|r| r.slowdown).sum();
    assert!(
        (slowdowns / expected - 1.0).abs() < 1e-4,
        "{slowdowns} {expected}"
    );
}

/// A loss counts at the switch that has lost the packet.
#[test]
fn losses_count_where_they_happen() {
    let (scenario, trace) = network(&[]);
    let mut env = Fabric::in_network(&scenario, &trace, &options("loss")).unwrap();
    let mut lost = [0.0; 6];
    play(&mut env, 2, |env, switch| {
        let at = env.simulator().topology().scenario_at(&scenario, switch);
        let beta = at.network.buffer_bytes as f64 / f64::from(at.network.ports);
        let packets = beta / scenario.full_packet_bytes() as f64;
        lost[switch.index()] -= env.reward_of(switch).total * packets;
    });
    let outcome = env.outcome();
    let (leaves, spines) = (lost[..4].iter().sum::<f64>(), lost[4..].iter().sum::<f64>());
    // Lost SYNs count too, lost acknowledgements do not.
    let data = outcome.summary.drops_data as f64;
    assert!(leaves + spines > data - 0.2, "{lost:?} {data}");
    assert!(leaves + spines < outcome.summary.drops as f64 + 0.2);
    // No switch has lost more acknowledgements than all together.
    let others = outcome.summary.drops as f64 - data;
    for (lost, row) in lost.iter().zip(&outcome.switches) {
        let all = row.drops as f64;
        let least = all - others - 0.2;
        assert!((least..all + 0.2).contains(lost), "{lost} of {all}");
    }
    assert!(leaves > 0.0 && others < data);
}

/// The return of every switch from time zero.
fn returns(run: &(Scenario, Trace), options: &ControlOptions, alpha: usize) -> Vec<f64> {
    let mut env = Fabric::in_network(&run.0, &run.1, options).unwrap();
    let mut sums = vec![(0.0, 1.0); env.switches()];
    play(&mut env, alpha, |env, switch| {
        let (sum, discount) = &mut sums[switch.index()];
        let reward = env.reward_of(switch);
        *sum += *discount * reward.total;
        *discount *= f64::from(reward.discount);
    });
    sums.into_iter().map(|(sum, _)| sum).collect()
}

/// As with one switch, neither the baseline nor the potential favours a policy.
#[test]
fn baseline_and_potential_shift_every_policy_s_return_alike() {
    let run = network(&[]);
    for objective in ["fct", "slowdown"] {
        let [plain, relative, shaped] = reward_options().map(|options| ControlOptions {
            objective: objective.parse().unwrap(),
            ..options
        });
        let of = |options: &ControlOptions| [1, 5].map(|alpha| returns(&run, options, alpha));
        let [low, high] = of(&plain);
        assert!(
            low.iter()
                .zip(&high)
                .any(|(low, high)| (low - high).abs() > 0.01)
        );
        for options in [relative, shaped] {
            let [other_low, other_high] = of(&options);
            for switch in 0..low.len() {
                let shift = |other: &[f64], plain: &[f64]| other[switch] - plain[switch];
                let difference = shift(&other_low, &low) - shift(&other_high, &high);
                let tolerance = 1e-3 * (1.0 + low[switch].abs());
                assert!(
                    difference.abs() < tolerance,
                    "{objective} {switch}: {difference}"
                );
                assert!(other_low[switch] > low[switch]);
            }
        }
    }
}

/// The time since the last decision is in units of the port's own line.
#[test]
fn ports_of_two_rates_have_two_units_of_time() {
    let (scenario, trace) = network(&["fabric_rate_bps=40000000000", "max_interval_us=100"]);
    let mut env = Fabric::in_network(&scenario, &trace, &ControlOptions::default()).unwrap();
    let (mut leaves, mut last) = (0, vec![Instant::ZERO; 6]);
    while env.advance() == StopReason::Decision {
        let at = env.at();
        let tier = env.simulator().topology().tier(at);
        let seen = scenario.at_switch(tier);
        assert_eq!(seen.network.rate_bps, 40_000_000_000);
        let beta = (seen.network.buffer_bytes / u64::from(seen.network.ports)) as f64;
        let now = env.simulator().now();
        let elapsed = (now - std::mem::replace(&mut last[at.index()], now)).as_secs_f64();
        for (port, history) in env.observation().chunks(HISTORY * FEATURES).enumerate() {
            let is_to_host = at.0 < 4 && port < 4;
            let rate = if is_to_host { 1e10 } else { 4e10 };
            let expected = log_scaled(elapsed * rate / (8.0 * beta));
            assert!((history[HISTORY * FEATURES - 1] - expected).abs() < 1e-6);
            let drain_ns = 8e9 * beta / rate;
            assert!((env.reading().units(port).drain_ns as f64 - drain_ns).abs() <= 1.0);
            leaves += usize::from(is_to_host);
        }
        assert!(elapsed <= 100e-6 + 1e-9);
        env.act(&vec![0.0; env.ports()]);
    }
    assert!(leaves > 100);
}

/// A late decision comes into force at its own switch, while others decide.
#[test]
fn late_decisions_of_several_switches_do_not_disturb_each_other() {
    let (scenario, trace) = network(&["decision_latency_us=50"]);
    let mut env = Fabric::in_network(&scenario, &trace, &ControlOptions::default()).unwrap();
    let mut decided = [(Instant::ZERO, 2u8); 6];
    let (mut switched, mut before) = (0, SwitchId(0));
    while env.advance() == StopReason::Decision {
        let (at, now) = (env.at(), env.simulator().now());
        let (since, level) = decided[at.index()];
        assert!(env.reading().levels().iter().all(|&own| own == level));
        assert!(since == Instant::ZERO || now >= since + Duration::from_us(50));
        switched += usize::from(at != before);
        before = at;
        let next = u8::try_from(env.decisions() % 8).unwrap();
        decided[at.index()] = (now, next);
        env.act(&vec![cell_centre(usize::from(next)); env.ports()]);
    }
    assert!(switched > 20, "{switched}");
}

/// Features that need a single switch report an error.
#[test]
fn a_network_has_no_port_slowdowns_and_no_record() {
    let (scenario, trace) = network(&[]);
    let error = Fabric::in_network(&scenario, &trace, &options("fairness")).unwrap_err();
    assert!(error.to_string().contains("needs one switch"), "{error}");
    let error = ControlEnv::new(&scenario, &trace, &ControlOptions::default()).unwrap_err();
    assert!(error.to_string().contains("needs one switch"), "{error}");
}
