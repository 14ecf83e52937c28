//! Many environments in parallel under a random agent: `cargo run --release --example random_agent`.

use bufgym::agents::RandomAgent;
use bufgym::env::control::Controller as _;
use bufgym::env::gym::{AutoresetMode, MakeOptions, ResetOptions, VectorSeed, make_vec};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut envs = make_vec(
        "bufgym/NDT-16x1G-v0",
        32,
        AutoresetMode::SameStep,
        &MakeOptions::default(),
    )?;
    let mut buffers = envs.buffers();
    envs.reset(VectorSeed::From(1), &ResetOptions::default(), &mut buffers)?;
    let mut agent = RandomAgent::new(1);
    let mut actions = vec![0.0; 32 * 16];
    for _ in 0..1_000 {
        agent.act(&buffers.observations, actions.len(), &mut actions);
        envs.step(&actions, &mut buffers)?;
        for episode in buffers.infos.iter().flatten() {
            println!(
                "trace {:2}: {:4} flows, {:4} decisions, mean FCT {:7.2} ms",
                episode.index, episode.flows, episode.decisions, episode.mean_fct_ms
            );
        }
    }
    Ok(())
}
