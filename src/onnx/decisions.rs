//! Tests that exported networks decide like those in the checkpoints.

use std::fs;
use std::path::{Path, PathBuf};

use bufgym_env::control::{Controller, RunOptions, action_index, run_controlled};
use bufgym_eval::data::{Evaluation, Role, TraceResult};
use bufgym_eval::evaluate::{EvalConfig, evaluate};
use bufgym_export::{Network, onnx};
use bufgym_models::checkpoint;
use bufgym_sim::scenario::Scenario;
use bufgym_sim::traffic::generate;
use bufgym_util::rng::{Split, trace_seed};

use super::*;

/// Names of shipped weights: one value per port, and two.
const SHIPPED: [&str; 2] = ["ndt-fct-alpha", "ndt-fct"];

fn checkpoint(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("checkpoints")
        .join(name)
}

/// Exports a checkpoint like `bufgym export`, and returns both as policies: `ndt:` and `onnx:`.
fn both(name: &str, folder: &Path) -> [Entrant; 2] {
    let from = checkpoint(name);
    let (weights, manifest) = checkpoint::load_actor(&from).unwrap();
    let bytes = onnx::encode(&Network::from_actor(&weights, &manifest), &manifest).unwrap();
    let file = folder.join(format!("{name}.onnx"));
    fs::write(&file, bytes).unwrap();
    [
        format!("ndt:{}", from.display()).parse().unwrap(),
        entrant(&format!("onnx:{}", file.display())).unwrap(),
    ]
}

fn scenario() -> Scenario {
    let mut scenario = Scenario::preset("ndt-16x1g").unwrap();
    scenario.set("flows=300..300").unwrap();
    scenario
}

fn run(entrants: Vec<Entrant>, traces: u64) -> Evaluation {
    let config = EvalConfig {
        traces,
        resamples: 200,
        ..EvalConfig::new(scenario(), entrants, 5)
    };
    evaluate(&config, &|_| {}).unwrap()
}

#[test]
fn an_exported_checkpoint_is_the_checkpoint_trace_by_trace() {
    let folder = tempfile::tempdir().unwrap();
    for name in SHIPPED {
        let [native, portable] = both(name, folder.path());
        assert_eq!(portable.role(), Role::Learned);
        assert!(portable.network().is_none());
        let low_level = |entrant: &Entrant| entrant.controller().unwrap().1;
        assert_eq!(low_level(&portable), low_level(&native));
        let origin = portable.entry().origin;
        assert!(
            origin.starts_with("ONNX network trained on ndt-16x1g for fct"),
            "{origin}"
        );
        let evaluation = run(vec![native.clone(), portable.clone()], 6);
        let results = |entrant: &Entrant| -> Vec<TraceResult> {
            let results = evaluation.results_of(entrant.name());
            let unnamed = |result: &TraceResult| TraceResult {
                policy: String::new(),
                ..result.clone()
            };
            results.map(unnamed).collect()
        };
        assert_eq!(results(&portable).len(), 6);
        assert_eq!(results(&portable), results(&native), "{name}");
    }
}

/// Decides like one controller and counts how often another would choose another level.
struct Beside {
    leads: Box<dyn Controller>,
    other: Box<dyn Controller>,
    levels: u64,
    different: u64,
}

impl Controller for Beside {
    fn outputs(&self) -> usize {
        self.leads.outputs()
    }

    fn act(&mut self, observation: &[f32], ports: usize, action: &mut [f32]) {
        let mut theirs = action.to_vec();
        self.leads.act(observation, ports, action);
        self.other.act(observation, ports, &mut theirs);
        for (&ours, &theirs) in action.iter().zip(&theirs) {
            assert!((ours - theirs).abs() < 1e-5, "{ours} {theirs}");
            self.levels += 1;
            self.different += u64::from(action_index(ours) != action_index(theirs));
        }
    }
}

#[test]
fn levels_of_an_exported_checkpoint_are_those_of_the_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    for name in SHIPPED {
        let [native, portable] = both(name, folder.path());
        let (leads, low_level) = native.controller().unwrap();
        let (other, _) = portable.controller().unwrap();
        let mut beside = Beside {
            leads,
            other,
            levels: 0,
            different: 0,
        };
        let mut options = RunOptions::default();
        options.control.low_level = low_level;
        let scenario = scenario();
        for index in 0..8 {
            let trace = generate(&scenario, trace_seed(Split::Test, 11, index));
            run_controlled(&scenario, &trace, &mut beside, &options).unwrap();
        }
        println!(
            "{name}: {} of {} levels differ",
            beside.different, beside.levels
        );
        assert!(beside.levels > 10_000, "{}", beside.levels);
        // Rounding in another order may rarely move a sum across an edge between levels.
        assert!(
            beside.different * 10_000 <= beside.levels,
            "{}",
            beside.different
        );
    }
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let folder = tempfile::tempdir().unwrap();
    let [_, portable] = both("ndt-fct", folder.path());
    let on = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let evaluation = pool.unwrap().install(|| run(vec![portable.clone()], 4));
        evaluation.results
    };
    assert_eq!(on(1), on(4));
}
