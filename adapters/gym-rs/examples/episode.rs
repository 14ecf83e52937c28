//! One episode with random actions through the `Env` trait of gym-rs.
//!
//! `cargo run --release -p bufgym-gym-rs --example episode`

use bufgym_gym_rs::{Action, GymRsEnv};
use gym_rs::core::{Env, EnvProperties};
use gym_rs::utils::renderer::{RenderMode, Renders};
use rand::Rng;

fn main() -> Result<(), bufgym_env::gym::RegistryError> {
    let mut env = GymRsEnv::make("bufgym/NDT-16x1G-v0", &Default::default())?;
    env.reset(Some(7), false, None);
    let mut rng = env.rand_random().clone();
    let mut return_ = 0.0;
    let stats = loop {
        let action = Action((0..16).map(|_| rng.gen_range(-1.0..=1.0)).collect());
        let step = env.step(action);
        return_ += step.reward.into_inner();
        if step.done || step.truncated {
            break step.info.and_then(|info| info.episode).unwrap_or_default();
        }
    };
    if let Renders::Ansi(lines) = env.render(RenderMode::Ansi) {
        println!("{}", lines.join("\n"));
    }
    println!(
        "{} decisions, return {return_:.2}, {} flows, mean FCT {:.2} ms, {} drops",
        stats.decisions, stats.flows, stats.mean_fct_ms, stats.drops
    );
    Ok(())
}
