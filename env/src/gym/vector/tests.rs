use super::*;
use crate::gym::testing::{Walk, on_threads};
use crate::gym::{EnvError, Space, wrappers::discrete_alpha};

const PLAIN: ResetOptions = ResetOptions { trace: None };

/// Three walks that end after 1, 2 and 3 steps, at episodes 0, 1 and 2.
fn walks(mode: AutoresetMode) -> (VectorEnv<Walk>, StepBuffers) {
    let mut envs = VectorEnv::new(vec![Walk::new(1), Walk::new(2), Walk::new(3)], mode).unwrap();
    let mut buffers = envs.buffers();
    envs.reset(VectorSeed::From(0), &PLAIN, &mut buffers)
        .unwrap();
    (envs, buffers)
}

#[test]
fn reset_fills_the_rows_in_order() {
    let (_, buffers) = walks(AutoresetMode::NextStep);
    assert_eq!(buffers.observations, [0.0, 0.0, 1.0, 0.0, 2.0, 0.0]);
    assert_eq!(buffers.resets, [true; 3]);
    assert_eq!(buffers.rewards, [0.0; 3]);
    assert_eq!(buffers.discounts, [1.0; 3]);
    assert_eq!(buffers.observation(2), [2.0, 0.0]);
}

#[test]
fn next_step_semantics() {
    let (mut envs, mut buffers) = walks(AutoresetMode::NextStep);
    envs.step(&[0.25, 0.5, 1.0], &mut buffers).unwrap();
    assert_eq!(buffers.observations, [0.0, 0.25, 1.0, 0.5, 2.0, 1.0]);
    assert_eq!(buffers.terminated, [true, false, false]);
    assert_eq!(buffers.truncated, [false; 3]);
    assert_eq!(buffers.rewards, [0.25, 0.5, 1.0]);
    assert_eq!(buffers.infos[0].as_ref().unwrap().return_, 0.25);
    assert!(buffers.infos[1].is_none());

    envs.step(&[0.25, 0.5, 1.0], &mut buffers).unwrap();
    assert_eq!(buffers.observations, [1.0, 0.0, 1.0, 1.0, 2.0, 2.0]);
    assert_eq!(buffers.terminated, [false, true, false]);
    assert_eq!(buffers.resets, [true, false, false]);
    assert_eq!(buffers.rewards, [0.0, 0.5, 1.0]);
    assert_eq!(buffers.port_rewards, [0.0, 0.5, 1.0]);
    assert_eq!(buffers.discounts, [1.0, 0.5, 0.5]);
    assert_eq!(buffers.elapsed_ps, [0, 1_000_000_000, 1_000_000_000]);
    assert!(buffers.infos[0].is_none());
}

#[test]
fn memory_of_the_callers_own_is_written_like_buffers() {
    let (mut envs, mut buffers) = walks(AutoresetMode::NextStep);
    let mut other = envs.clone();
    // Observations lie in the middle of a longer slice; the rest keeps its values.
    let mut memory = [9.0; 10];
    let mut own = other.buffers();
    let actions = [0.25, 0.5, 1.0];
    envs.step(&actions, &mut buffers).unwrap();
    let slices = StepSlices {
        observations: &mut memory[2..8],
        ..own.slices()
    };
    other.step_into(&actions, slices).unwrap();
    assert_eq!(memory[2..8], buffers.observations);
    assert_eq!([&memory[..2], &memory[8..]].concat(), [9.0; 4]);
    assert_eq!(
        (&own.rewards, &own.infos),
        (&buffers.rewards, &buffers.infos)
    );

    let mask = [false, true, false];
    let slices = StepSlices {
        observations: &mut memory[2..8],
        ..own.slices()
    };
    let reset = other.reset_into(&mask, VectorSeed::Keep, &PLAIN, slices);
    reset.unwrap();
    assert_eq!(
        memory[4..6],
        [2.0, 0.0],
        "the second walk begins its next episode"
    );
    assert_eq!(memory[2..4], buffers.observations[..2]);

    let slices = StepSlices {
        observations: &mut memory[..5],
        ..own.slices()
    };
    let error = other.step_into(&actions, slices).unwrap_err();
    let text = "buffer of observations: 5 given where 6 are needed";
    assert_eq!(error.to_string(), text);
}

#[test]
fn same_step_semantics() {
    let (mut envs, mut buffers) = walks(AutoresetMode::SameStep);
    envs.step(&[0.25, 0.5, 1.0], &mut buffers).unwrap();
    assert_eq!(buffers.observations, [1.0, 0.0, 1.0, 0.5, 2.0, 1.0]);
    assert_eq!(buffers.final_observation(0), [0.0, 0.25]);
    assert_eq!(buffers.terminated, [true, false, false]);
    assert_eq!(buffers.resets, [false; 3]);
    assert_eq!(buffers.rewards, [0.25, 0.5, 1.0]);
    assert_eq!(buffers.discounts, [0.5; 3], "of the step, not of the reset");
    assert_eq!(buffers.infos[0].as_ref().unwrap().return_, 0.25);

    envs.step(&[0.5, 0.5, 1.0], &mut buffers).unwrap();
    assert_eq!(buffers.observations, [2.0, 0.0, 2.0, 0.0, 2.0, 2.0]);
    assert_eq!(buffers.final_observation(0), [1.0, 0.5]);
    assert_eq!(buffers.final_observation(1), [1.0, 1.0]);
}

#[test]
fn disabled_semantics_with_a_masked_reset() {
    let (mut envs, mut buffers) = walks(AutoresetMode::Disabled);
    let actions = [0.25, 0.5, 1.0];
    envs.step(&actions, &mut buffers).unwrap();
    let error = envs.step(&actions, &mut buffers).unwrap_err();
    assert!(matches!(
        error,
        VectorError::Env {
            env: 0,
            source: EnvError::ResetNeeded(_)
        }
    ));

    let (mut envs, mut buffers) = walks(AutoresetMode::Disabled);
    envs.step(&actions, &mut buffers).unwrap();
    let done = buffers.terminated.clone();
    envs.reset_where(&done, VectorSeed::Keep, &PLAIN, &mut buffers)
        .unwrap();
    assert_eq!(buffers.observations, [1.0, 0.0, 1.0, 0.5, 2.0, 1.0]);
    assert_eq!(buffers.terminated, [false; 3]);
    envs.step(&actions, &mut buffers).unwrap();
    assert_eq!(buffers.observations, [1.0, 0.25, 1.0, 1.0, 2.0, 2.0]);
}

#[test]
fn the_error_of_a_masked_reset_names_the_right_environment() {
    let (mut envs, mut buffers) = walks(AutoresetMode::Disabled);
    let mask = [false, true, true];
    let error = envs.reset_where(&mask, VectorSeed::Each(&[None]), &PLAIN, &mut buffers);
    assert_eq!(
        error.unwrap_err().to_string(),
        "seeds: 1 given where 3 are needed"
    );
    envs.reset_where(
        &mask,
        VectorSeed::Each(&[None, Some(4), None]),
        &PLAIN,
        &mut buffers,
    )
    .unwrap();
    assert_eq!(buffers.observations, [0.0, 0.0, 4.0, 0.0, 3.0, 0.0]);
}

#[test]
fn a_bad_action_moves_no_environment() {
    let (mut envs, mut buffers) = walks(AutoresetMode::NextStep);
    let error = envs.step(&[0.5, 0.5, 7.0], &mut buffers).unwrap_err();
    assert_eq!(
        error.to_string(),
        "environment 2: invalid action: value 7 at 0 is not in [-1, 1]"
    );
    assert!(envs.envs().iter().all(|env| env.observation()[1] == 0.0));
    let error = envs.step(&[0.5], &mut buffers).unwrap_err();
    assert_eq!(error.to_string(), "actions: 1 given where 3 are needed");
}

#[test]
fn buffers_of_another_shape_are_refused() {
    let (mut envs, mut buffers) = walks(AutoresetMode::NextStep);
    buffers.rewards.pop();
    let error = envs.step(&[0.5; 3], &mut buffers).unwrap_err();
    assert_eq!(
        error.to_string(),
        "buffer of rewards: 2 given where 3 are needed"
    );
}

#[test]
fn environments_have_to_be_alike() {
    let none = VectorEnv::<Walk>::new(Vec::new(), AutoresetMode::NextStep);
    assert!(matches!(none, Err(VectorError::Empty)));
    let mut other = Walk::new(3);
    other.env.agents[0].spaces[1] = Space::uniform_box(&[2], -1.0, 1.0);
    let mixed = VectorEnv::new(vec![Walk::new(3), other], AutoresetMode::NextStep);
    assert!(matches!(
        mixed,
        Err(VectorError::Mixed {
            env: 1,
            what: "action space"
        })
    ));
}

#[test]
fn an_environment_may_be_stepped_on_its_own_as_often_as_it_likes() {
    let (mut envs, _) = walks(AutoresetMode::SameStep);
    let mut totals = vec![0.0; 3];
    let counts = envs
        .par_map_with(&mut totals, |index, env, total| {
            for _ in 0..=index {
                *total += env.step(&[0.5])?.reward;
            }
            Ok(index + 1)
        })
        .unwrap();
    assert_eq!(counts, [1, 2, 3]);
    assert_eq!(totals, [0.5, 1.0, 1.5]);
}

#[test]
fn the_first_error_by_index_is_reported() {
    for threads in [1, 2, 5] {
        let (mut envs, _) = walks(AutoresetMode::SameStep);
        let result = on_threads(threads, || {
            envs.par_map(|index, env| env.step(&[if index > 0 { 9.0 } else { 0.0 }]).map(|_| ()))
        });
        assert!(matches!(result, Err(VectorError::Env { env: 1, .. })));
    }
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let run = |threads| {
        on_threads(threads, || {
            let (mut envs, mut buffers) = walks(AutoresetMode::SameStep);
            let mut all = Vec::new();
            for step in 0..20 {
                envs.step(&[step as f32 / 20.0; 3], &mut buffers).unwrap();
                all.push(buffers.clone());
            }
            all
        })
    };
    assert_eq!(run(1), run(2));
    assert_eq!(run(1), run(5));
}

#[test]
fn a_snapshot_continues_bit_for_bit() {
    let (mut one, mut buffers) = walks(AutoresetMode::NextStep);
    one.step(&[0.5; 3], &mut buffers).unwrap();
    let envs = vec![Walk::new(1), Walk::new(2), Walk::new(3)];
    let mut two = VectorEnv::new(envs, AutoresetMode::NextStep).unwrap();
    two.restore(&one.snapshot()).unwrap();
    let mut others = two.buffers();
    for _ in 0..5 {
        one.step(&[0.25; 3], &mut buffers).unwrap();
        two.step(&[0.25; 3], &mut others).unwrap();
        assert_eq!(buffers, others);
    }
    assert!(matches!(
        two.restore(&[]),
        Err(VectorError::Length {
            what: "snapshots",
            ..
        })
    ));
}

#[test]
fn wrapped_environments_are_stepped_too() {
    let wrapped = vec![discrete_alpha(Walk::new(9)); 2];
    let mut envs = VectorEnv::new(wrapped, AutoresetMode::NextStep).unwrap();
    let mut buffers = envs.buffers();
    envs.reset(VectorSeed::Keep, &PLAIN, &mut buffers).unwrap();
    envs.step(&[0.0, 7.0], &mut buffers).unwrap();
    assert_eq!(buffers.rewards, [-0.875, 0.875]);
}
