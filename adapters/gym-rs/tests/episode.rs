//! Checks that an episode through the trait of gym-rs equals the episode of the environment itself.

use bufgym_env::gym::{self, EnvError, MakeOptions, ResetOptions, make};
use bufgym_gym_rs::{Action, GymRsEnv, Observation};
use gym_rs::core::{Env, EnvProperties};
use gym_rs::spaces::{BoxR, Space};
use gym_rs::utils::custom::traits::Sample;
use gym_rs::utils::renderer::{RenderMode, Renders};

const ID: &str = "bufgym/NDT-16x1G-v0";

fn options(settings: &[&str]) -> MakeOptions {
    let settings = settings
        .iter()
        .map(|setting| (*setting).to_owned())
        .collect();
    MakeOptions {
        settings,
        ..MakeOptions::default()
    }
}

fn small() -> MakeOptions {
    options(&["flows=20..30", "arrivals=synchronised"])
}

#[test]
fn an_episode_gives_the_same_numbers_as_without_the_adapter() {
    let mut adapted = GymRsEnv::make(ID, &small()).unwrap();
    let mut own = make(ID, &small()).unwrap();
    let (observation, info) = adapted.reset(Some(3), true, None);
    let reset = gym::Env::reset(&mut own, Some(3), &ResetOptions::default()).unwrap();
    assert_eq!(observation.0, reset.observation);
    assert_eq!(info.as_ref(), Some(reset.info));
    for decision in 0.. {
        let action = Action::uniform(16, (decision % 9) as f32 / 4.5 - 1.0);
        let theirs = gym::Env::step(&mut own, &action.0).unwrap();
        let ours = adapted.step(action);
        assert_eq!(ours.observation.0, theirs.observation);
        assert_eq!(ours.reward.into_inner(), theirs.reward);
        assert_eq!(
            (ours.done, ours.truncated),
            (theirs.terminated, theirs.truncated)
        );
        assert_eq!(ours.info.as_ref(), Some(theirs.info));
        if ours.done {
            assert!(decision > 0);
            return;
        }
    }
}

#[test]
fn truncation_is_not_done() {
    let mut env = GymRsEnv::make(ID, &options(&["max_decisions=2"])).unwrap();
    env.reset(Some(1), false, None);
    env.step(Action::uniform(16, 0.0));
    let last = env.step(Action::uniform(16, 0.0));
    assert!(last.truncated && !last.done);
}

#[test]
fn errors_without_panics() {
    let mut env = GymRsEnv::make(ID, &small()).unwrap();
    let action = Action::uniform(16, 0.0);
    assert!(matches!(
        env.try_step(&action),
        Err(EnvError::ResetNeeded(_))
    ));
    env.try_reset(None).unwrap();
    assert!(matches!(
        env.try_step(&Action(vec![2.0])),
        Err(EnvError::InvalidAction(_))
    ));
    env.try_step(&action).unwrap();
}

#[test]
#[should_panic(expected = "step: no episode is running: call reset before step")]
fn a_step_before_the_first_reset_panics() {
    GymRsEnv::make(ID, &small())
        .unwrap()
        .step(Action::uniform(16, 0.0));
}

#[test]
fn spaces_and_samples() {
    let env = GymRsEnv::make(ID, &small()).unwrap();
    assert!(env.action_space().contains(Action::uniform(16, 1.0)));
    assert!(!env.action_space().contains(Action::uniform(16, 1.5)));
    assert!(!env.action_space().contains(Action::uniform(15, 1.0)));
    let bounds = BoxR::new(Observation::uniform(2, 0.25), Observation::uniform(2, 0.5));
    let sample = Observation::sample_between(&mut env.rand_random().clone(), Some(bounds));
    assert_eq!(sample.0.len(), 2 * 8 * 5);
    assert!(sample.0.iter().all(|value| (0.25..=0.5).contains(value)));
}

#[test]
fn text_shows_every_port() {
    let mut env = GymRsEnv::make(ID, &small()).unwrap();
    env.reset(Some(1), false, None);
    let Renders::Ansi(lines) = env.render(RenderMode::Ansi) else {
        panic!("no text")
    };
    assert_eq!(lines.len(), 16);
    assert!(lines[0].starts_with("port   0  α     1"), "{}", lines[0]);
    assert_eq!(env.render(RenderMode::Human), Renders::None);
}

#[test]
fn the_serialised_state_is_the_snapshot() {
    let mut env = GymRsEnv::make(ID, &small()).unwrap();
    env.reset(Some(1), false, None);
    env.step(Action::uniform(16, 1.0));
    let value = serde_json::to_value(&env).unwrap();
    assert_eq!(
        value["episode"]["actions"].as_array().map(Vec::len),
        Some(16)
    );
}
