use super::*;
use crate::control::{FEATURES, HISTORY};
use crate::gym::checker::{CheckOptions, check_env};
use crate::gym::{Autoreset, AutoresetMode, EpisodeStats, StepBuffers, VectorEnv, VectorSeed};
use bufgym_sim::scenario::Scenario;
use bufgym_util::rng::{Split, stream};

const PLAIN: ResetOptions = ResetOptions { trace: None };

/// Four ports and few flows, all starting together in groups, so that there is much to decide.
fn options(changes: &[&str]) -> BufferEnvOptions {
    let mut scenario = Scenario::default();
    let small = [
        "ports=4",
        "active_ports=2..4",
        "incast_degree=2..3",
        "flows=12..24",
        "buffer_bytes=100000",
        "arrivals=synchronised",
    ];
    for setting in small.iter().chain(changes) {
        scenario.set(setting).unwrap();
    }
    BufferEnvOptions {
        scenario,
        ..BufferEnvOptions::default()
    }
}

fn env(changes: &[&str]) -> BufferEnv {
    BufferEnv::new(options(changes)).unwrap()
}

/// Plays random actions to the end of the episode, and returns the statistics.
fn finish(env: &mut BufferEnv, seed: u64) -> (EpisodeStats, bool, bool) {
    let mut rng = stream(seed, "actions", 0);
    loop {
        let action = env.action_space().sample(&mut rng);
        let step = env.step(&action).unwrap();
        if step.done() {
            return (
                step.info.episode.clone().unwrap(),
                step.terminated,
                step.truncated,
            );
        }
    }
}

#[test]
fn it_keeps_the_contract() {
    let check = CheckOptions {
        steps: 60,
        ..CheckOptions::default()
    };
    check_env(|| env(&[]), &check).unwrap_or_else(|violations| panic!("{violations}"));
}

#[test]
fn it_keeps_the_contract_with_limits_and_latency() {
    let check = CheckOptions {
        steps: 60,
        ..CheckOptions::default()
    };
    let changes = [
        "max_decisions=7",
        "decision_latency_us=100",
        "max_interval_us=20000",
    ];
    check_env(|| env(&changes), &check).unwrap_or_else(|violations| panic!("{violations}"));
}

#[test]
fn the_first_observation_shows_the_trigger() {
    let mut env = env(&[]);
    let reset = env.reset(Some(3), &PLAIN).unwrap();
    let frames = reset.observation.chunks_exact(HISTORY * FEATURES);
    // Some port has enqueued or dropped at least β since the start: log(1 + 1)/log 65.
    let largest = frames
        .map(|port| {
            let newest = &port[(HISTORY - 1) * FEATURES..];
            newest[1].max(newest[2])
        })
        .fold(0.0, f32::max);
    assert!(
        f64::from(largest) >= libm::log(2.0) / libm::log(65.0) - 1e-6,
        "{largest}"
    );
}

#[test]
fn an_episode_ends_when_all_flows_are_complete() {
    let mut env = env(&[]);
    env.reset(Some(1), &PLAIN).unwrap();
    let (stats, terminated, truncated) = finish(&mut env, 0);
    assert!(terminated && !truncated);
    assert_eq!(stats.completed, stats.flows);
    assert!((12..=24).contains(&stats.flows));
    assert!(stats.return_ < 0.0 && stats.return_ < stats.discounted_return);
    assert!(stats.mean_fct_ms > 0.0 && stats.packets_forwarded > 0);
}

#[test]
fn a_limit_of_decisions_truncates() {
    let mut env = env(&["max_decisions=3"]);
    env.reset(Some(1), &PLAIN).unwrap();
    let (stats, terminated, truncated) = finish(&mut env, 0);
    assert!(truncated && !terminated);
    assert_eq!(stats.decisions, 3);
    assert!(stats.completed < stats.flows);
}

#[test]
fn a_limit_of_time_truncates() {
    let mut env = env(&["max_simulated_ms=20"]);
    env.reset(Some(1), &PLAIN).unwrap();
    let (stats, terminated, truncated) = finish(&mut env, 0);
    assert!(truncated && !terminated);
    assert!(stats.simulated_s <= 0.020 + 1e-9, "{}", stats.simulated_s);
}

#[test]
fn return_of_the_statistics_is_the_sum_of_the_rewards() {
    let mut env = env(&[]);
    env.reset(Some(2), &PLAIN).unwrap();
    let (mut sum, mut discounted, mut factor) = (0.0, 0.0, 1.0);
    loop {
        let step = env.step(&[0.2, -0.9, 0.4, 0.9]).unwrap();
        sum += step.reward;
        discounted += factor * step.reward;
        factor *= f64::from(step.info.discount);
        if let Some(stats) = &step.info.episode {
            assert_eq!((stats.return_, stats.discounted_return), (sum, discounted));
            break;
        }
    }
}

#[test]
fn traces_without_a_decision_are_passed_over() {
    // One flow alone hardly ever fills a share of the buffer; some do.
    let mut env = env(&["flows=1..3", "buffer_bytes=400000"]);
    let mut passed_over = 0;
    env.reset(Some(0), &PLAIN).unwrap();
    for _ in 0..20 {
        let reset = env.reset(None, &PLAIN).unwrap();
        assert_eq!(reset.info.no_decision, reset.info.skipped > 0);
        passed_over += reset.info.skipped;
    }
    assert!(passed_over > 0);
    assert_eq!(
        env.network.episodes.next,
        21 + passed_over + skipped_first(&env)
    );
}

/// Returns the number of traces that the very first reset skipped.
fn skipped_first(env: &BufferEnv) -> u64 {
    let mut fresh = BufferEnv::new(env.options().clone()).unwrap();
    fresh.reset(Some(0), &PLAIN).unwrap().info.skipped
}

#[test]
fn traffic_that_never_decides_is_an_error_and_not_a_hang() {
    let mut options = options(&["flows=1..1", "buffer_bytes=1000000000"]);
    options.traces.traces = Some(5);
    let mut env = BufferEnv::new(options).unwrap();
    let error = env.reset(None, &PLAIN).unwrap_err();
    assert!(
        matches!(error, EnvError::NoDecision { tried: 5, .. }),
        "{error}"
    );
    assert!(matches!(env.step(&[0.0; 4]), Err(EnvError::ResetNeeded(_))));
}

#[test]
fn a_trace_can_be_asked_for_by_its_index() {
    let mut env = env(&[]);
    env.reset(Some(1), &PLAIN).unwrap();
    let expected = env.reset(None, &PLAIN).unwrap().observation.to_vec();
    let index = env.trace_index().unwrap();
    let next = env.reset(None, &PLAIN).unwrap().observation.to_vec();

    env.reset(Some(1), &PLAIN).unwrap();
    env.reset(None, &PLAIN).unwrap();
    let asked = env
        .reset(None, &ResetOptions { trace: Some(index) })
        .unwrap()
        .observation
        .to_vec();
    assert_eq!(asked, expected);
    assert_eq!(env.reset(None, &PLAIN).unwrap().observation, next);
}

#[test]
fn splits_and_seeds_are_other_traces() {
    let first = |split, seed| {
        let mut options = options(&[]);
        (options.traces.split, options.traces.seed) = (split, seed);
        let mut env = BufferEnv::new(options).unwrap();
        env.reset(None, &PLAIN).unwrap();
        finish(&mut env, 0).0
    };
    let stats = first(Split::Train, 1);
    assert_eq!(stats, first(Split::Train, 1));
    assert_ne!(stats, first(Split::Train, 2));
    assert_ne!(stats, first(Split::Test, 1));
    assert_eq!(bufgym_util::rng::split_of(stats.seed), Some(Split::Train));
}

#[test]
fn a_snapshot_continues_bit_for_bit() {
    let changes = ["decision_latency_us=100"];
    for decisions in [0, 1, 9, 25] {
        let mut one = env(&changes);
        let mut rng = stream(decisions, "actions", 0);
        one.reset(Some(4), &PLAIN).unwrap();
        for _ in 0..decisions {
            let action = one.action_space().sample(&mut rng);
            if one.step(&action).unwrap().done() {
                one.reset(None, &PLAIN).unwrap();
            }
        }
        let text = serde_json::to_string(&one.snapshot()).unwrap();
        let snapshot: EnvSnapshot = serde_json::from_str(&text).unwrap();
        let mut two = env(&changes);
        let state = two.restore(&snapshot).unwrap().unwrap();
        assert_eq!(state.observation, one.state().observation);
        assert_eq!(state.info, one.state().info);
        assert_eq!(two.snapshot(), snapshot);
        for _ in 0..30 {
            let action = one.action_space().sample(&mut rng);
            let (a, b) = (one.step(&action).unwrap(), two.step(&action).unwrap());
            assert_eq!(format!("{a:?}"), format!("{b:?}"));
            if a.done() {
                let (a, b) = (
                    one.reset(None, &PLAIN).unwrap(),
                    two.reset(None, &PLAIN).unwrap(),
                );
                assert_eq!(format!("{a:?}"), format!("{b:?}"));
            }
        }
    }
}

#[test]
fn the_end_of_an_episode_and_no_episode_can_be_restored() {
    let mut over = env(&["max_decisions=2"]);
    let fresh = over.snapshot();
    over.reset(Some(1), &PLAIN).unwrap();
    finish(&mut over, 0);
    let mut other = env(&["max_decisions=2"]);
    other.restore(&over.snapshot()).unwrap();
    assert!(matches!(
        other.step(&[0.0; 4]),
        Err(EnvError::ResetNeeded(_))
    ));
    assert!(other.restore(&fresh).unwrap().is_none());
    assert!(matches!(
        other.step(&[0.0; 4]),
        Err(EnvError::ResetNeeded(_))
    ));
}

#[test]
fn snapshots_of_something_else_are_refused() {
    let mut one = env(&[]);
    one.reset(Some(1), &PLAIN).unwrap();
    let snapshot = one.snapshot();
    let error = env(&["load=0.7"]).restore(&snapshot).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("snapshot does not fit: it was taken of"),
        "{error}"
    );

    let mut damaged = snapshot.clone();
    damaged.episode.as_mut().unwrap().actions = vec![9; 4];
    assert!(matches!(one.restore(&damaged), Err(EnvError::Snapshot(_))));
    damaged.episode.as_mut().unwrap().actions = vec![0; 3];
    assert!(matches!(one.restore(&damaged), Err(EnvError::Snapshot(_))));
    damaged.episode.as_mut().unwrap().actions = vec![0; 4 * 1_000_000];
    let error = one.restore(&damaged).unwrap_err();
    assert!(error.to_string().contains("it ended after"), "{error}");
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let mut broken = options(&[]);
    broken.scenario.network.ports = 1;
    assert!(matches!(
        BufferEnv::new(broken),
        Err(EnvError::Simulation(_))
    ));
    let mut broken = options(&[]);
    broken.traces.stride = 0;
    assert!(matches!(BufferEnv::new(broken), Err(EnvError::Options(_))));
    let network = BufferEnvOptions {
        scenario: Scenario::preset("leafspine-4x4").unwrap(),
        ..BufferEnvOptions::default()
    };
    assert!(matches!(
        BufferEnv::new(network),
        Err(EnvError::Simulation(_))
    ));
}

fn five_workers() -> VectorEnv<BufferEnv> {
    let share = |worker| {
        let mut options = options(&[]);
        options.traces = options.traces.worker(worker, 5);
        BufferEnv::new(options).unwrap()
    };
    VectorEnv::new((0..5).map(share).collect(), AutoresetMode::SameStep).unwrap()
}

#[test]
fn workers_give_the_same_bits_on_any_number_of_threads() {
    let run = |threads: usize| -> (Vec<StepBuffers>, Vec<f64>) {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        pool.install(|| {
            let mut envs = five_workers();
            let mut buffers = envs.buffers();
            envs.reset(VectorSeed::Keep, &PLAIN, &mut buffers).unwrap();
            let mut all = Vec::new();
            for step in 0..30 {
                envs.step(&[step as f32 / 30.0; 20], &mut buffers).unwrap();
                all.push(buffers.clone());
            }
            let sums = envs.par_map(twenty_steps).unwrap();
            (all, sums)
        })
    };
    let one = run(1);
    assert_eq!(one, run(2));
    assert_eq!(one, run(5));
}

fn twenty_steps(index: usize, env: &mut Autoreset<BufferEnv>) -> Result<f64, EnvError> {
    let mut rng = stream(index as u64, "actions", 0);
    let mut sum = 0.0;
    for _ in 0..20 {
        let action = env.env().action_space().sample(&mut rng);
        sum += env.step(&action)?.reward;
    }
    Ok(sum)
}

#[test]
fn a_row_of_the_buffers_is_what_the_environment_alone_returns() {
    let mut envs = five_workers();
    let mut buffers = envs.buffers();
    envs.reset(VectorSeed::Keep, &PLAIN, &mut buffers).unwrap();
    let mut alone = five_workers().envs()[3].env().clone();
    let reset = alone.reset(None, &PLAIN).unwrap();
    assert_eq!(reset.observation, buffers.observation(3));
    assert_eq!(reset.info.privileged, buffers.privileged(3));
    for _ in 0..5 {
        envs.step(&[0.4; 20], &mut buffers).unwrap();
        let step = alone.step(&[0.4; 4]).unwrap();
        assert_eq!(step.reward, buffers.rewards[3]);
        assert_eq!(step.info.port_rewards, buffers.port_rewards(3));
        if step.done() {
            break;
        }
        assert_eq!(step.observation, buffers.observation(3));
    }
}
