//! Updates per second of the learner, on one thread.
//!
//! `cargo run --release -p bufgym-agents --example update_speed`

use std::time::Instant;

use bufgym_agents::{
    Batch, Frame, LearnerError, PortSac, PortsConfig, Replay, ReplayShape, SacConfig, Transition,
};
use bufgym_env::control::{ActionSet, Controller, PRIVILEGED};
use bufgym_models::noise::uniform;
use bufgym_models::windows::OBSERVATION;
use bufgym_models::{FastActor, cpu};
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const PORTS: usize = 16;

fn main() -> Result<(), LearnerError> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut replay = random_replay(&mut rng);
    for batch_size in [64, 256] {
        let config = SacConfig {
            batch_size,
            ..SacConfig::default()
        };
        let mut sac = PortSac::new(config, PortsConfig::default(), ActionSet::Alpha, 1, &cpu())?;
        let mut batch = Batch::default();
        let mut sampling = 0.0;
        let mut updating = 0.0;
        let mut rounds = 0;
        for round in 0.. {
            let start = Instant::now();
            replay.sample(batch_size, 1, &mut batch);
            let middle = Instant::now();
            sac.update(&batch);
            if round >= 4 {
                sampling += (middle - start).as_secs_f64();
                updating += middle.elapsed().as_secs_f64();
                rounds += 1;
            }
            if updating > 2.0 {
                break;
            }
        }
        println!(
            "batch {batch_size:>3}: \
             {:6.1} updates/s, {:6.2} ms an update, {:5.2} ms a batch",
            f64::from(rounds) / (sampling + updating),
            1e3 * updating / f64::from(rounds),
            1e3 * sampling / f64::from(rounds),
        );
    }
    inference(&mut rng);
    Ok(())
}

fn inference(rng: &mut Xoshiro256PlusPlus) {
    let mut actor = FastActor::new(&bufgym_models::ActorWeights::random(rng));
    let observation: Vec<f32> = (0..PORTS * OBSERVATION).map(|_| uniform(rng)).collect();
    let mut action = [0.0; PORTS];
    let rounds = 20_000;
    let start = Instant::now();
    for _ in 0..rounds {
        actor.act(std::hint::black_box(&observation), PORTS, &mut action);
        std::hint::black_box(&action);
    }
    let micros = start.elapsed().as_secs_f64() * 1e6 / f64::from(rounds);
    println!("inference: {micros:.2} us a decision of {PORTS} ports");
}

fn random_replay(rng: &mut Xoshiro256PlusPlus) -> Replay {
    let shape = ReplayShape {
        capacity: 4096,
        streams: 4,
        ports: PORTS,
        outputs: 1,
        pairs: 0,
    };
    let mut replay = Replay::new(shape, 1);
    for stream in 0..4 {
        let mut numbers = |count: usize| -> Vec<f32> { (0..count).map(|_| uniform(rng)).collect() };
        let frame = |numbers: &mut dyn FnMut(usize) -> Vec<f32>| {
            let observation = numbers(PORTS * OBSERVATION);
            Frame::newest(&observation, &numbers(PORTS * PRIVILEGED))
        };
        replay.start(stream, &frame(&mut numbers));
        for _ in 0..1000 {
            let transition = Transition {
                actions: vec![0; PORTS],
                raw: numbers(PORTS),
                port_rewards: numbers(PORTS),
                discount: 0.99,
                terminated: false,
                truncated: false,
                next: frame(&mut numbers),
                reset: None,
            };
            replay.push(stream, &transition);
        }
    }
    replay
}
