//! Searches for parameters, evaluations and figures on hosts give the same results as in one process, bit for bit, even
//! if a host is lost.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use bufgym_eval::evaluate::{EvalConfig, EvalError, evaluate};
use bufgym_eval::suite::ResultCache;
use bufgym_eval::{Entrant, Evaluation};
use bufgym_models::checkpoint::Manifest;
use bufgym_models::{ActorWeights, FastActor};
use bufgym_reproduce::fabric::FabricConfig;
use bufgym_reproduce::grid::{Forests, Learned};
use bufgym_reproduce::ndt::{self, NdtConfig, NdtFigure};
use bufgym_reproduce::{Paper, PapersError, Report, Scale, Work, measurements, write_into};
use bufgym_sim::switch::policy::ForestModel;
use bufgym_train::linear::{LinearConfig, LinearTuning, tune_linear};
use bufgym_train::remote::{Cluster, HostId, InProcess, RemoteError};
use bufgym_train::tune::{TuneConfig, Tuning, tune};
use bufgym_train::{Backend, TrainError};
use bufgym_util::rng::stream;

use super::small_scenario;

const BUILD: &str = "this build";

/// Runs `work` with two hosts, the second of which is lost after so many answers.
fn with_hosts<T>(answers: u64, work: impl FnOnce(&Cluster) -> T) -> T {
    let cluster = Cluster::new(BUILD);
    let given = AtomicU64::new(0);
    let hosts = InProcess::start(
        &cluster,
        BUILD,
        &[2, 1],
        &measurements(),
        move |message, answer| {
            let own = message.host == HostId(1);
            let lost = own && given.fetch_add(1, Ordering::SeqCst) >= answers;
            (!lost).then_some(answer)
        },
    );
    let result = work(&cluster);
    cluster.finish();
    hosts.unwrap().join();
    result
}

fn untrained() -> ActorWeights {
    ActorWeights::random(&mut stream(1, "test actor", 0))
}

#[test]
fn parameters_are_found_as_in_one_process() {
    let config = TuneConfig {
        simulations: 200,
        ..TuneConfig::new(small_scenario(), "dt+random".parse().unwrap(), 1)
    };
    let found = |backend: Backend| {
        let mut told = Vec::new();
        let tuning = tune(&config, &backend, &mut |progress| {
            told.push((progress.done, progress.best.to_string()));
        });
        let tuning = Tuning {
            wall_s: 0.0,
            ..tuning.unwrap()
        };
        (tuning, told)
    };
    let here = found(Backend::default());
    assert_eq!(with_hosts(u64::MAX, |cluster| found(cluster.into())), here);
    assert_eq!(with_hosts(3, |cluster| found(cluster.into())), here);
}

#[test]
fn a_linear_rule_is_found_as_in_one_process() {
    let config = LinearConfig {
        traces: 3,
        generations: 2,
        candidates: 4,
        generation_traces: 2,
        ..LinearConfig::new(small_scenario(), 5)
    };
    let found = |backend: Backend| LinearTuning {
        wall_s: 0.0,
        ..tune_linear(&config, &backend, &mut |_| ()).unwrap()
    };
    assert_eq!(
        with_hosts(2, |cluster| found(cluster.into())),
        found(Backend::default())
    );
}

#[test]
fn a_policy_that_does_not_fit_is_bad_input_on_hosts_too() {
    let invalid = LinearConfig::new(
        small_scenario().with(|scenario| {
            scenario.network.ports = 1;
        }),
        5,
    );
    let refused = with_hosts(u64::MAX, |cluster| {
        tune_linear(&invalid, &cluster.into(), &mut |_| ()).unwrap_err()
    });
    assert!(matches!(&refused, TrainError::Simulation(_)), "{refused}");

    let unfit: Entrant = "abm:alphas=1/2/3".parse().unwrap();
    let config = EvalConfig {
        traces: 1,
        ..EvalConfig::new(small_scenario(), vec![unfit], 1)
    };
    let here = evaluate(&config, &|_| {}).unwrap_err();
    let there = with_hosts(u64::MAX, |cluster| {
        cluster.evaluate(&config, &|_| {}).unwrap_err()
    });
    assert!(here.is_bad_input() && there.is_bad_input(), "{there}");
    assert!(matches!(&there, EvalError::Unfit(_)), "{there}");
    assert_eq!(there.to_string(), here.to_string());
}

#[test]
fn an_evaluation_has_the_same_numbers_and_tells_its_progress() {
    let entrants = vec!["edt".parse().unwrap(), learned()];
    let config = EvalConfig {
        traces: 3,
        resamples: 100,
        ..EvalConfig::new(small_scenario(), entrants, 1)
    };
    let timeless = |evaluation: Evaluation| {
        let mut json = serde_json::to_value(evaluation).unwrap();
        json["timing"].take();
        json
    };
    let last = Mutex::new((0, 0));
    let there = with_hosts(1, |cluster| {
        let progress = |progress: bufgym_eval::Progress<'_>| {
            *last.lock().unwrap() = (progress.done, progress.total);
        };
        cluster.evaluate(&config, &progress).unwrap()
    });
    // Two policies, DT and the unlimited buffer.
    assert_eq!(last.into_inner().unwrap(), (12, 12));
    assert_eq!(
        timeless(there),
        timeless(evaluate(&config, &|_| {}).unwrap())
    );
}

fn learned() -> Entrant {
    Entrant::learned("ndt", FastActor::new(&untrained()), "random weights")
}

/// Returns name and content of every file except the page, which has the wall time.
fn files(report: &Report) -> BTreeMap<String, String> {
    let folder = tempfile::tempdir().unwrap();
    write_into(report, folder.path()).unwrap();
    let entries = fs::read_dir(folder.path()).unwrap().map(Result::unwrap);
    let read = entries.map(|entry| {
        let name = entry.file_name().into_string().unwrap();
        (name, fs::read_to_string(entry.path()).unwrap())
    });
    read.filter(|(name, _)| name != "index.html").collect()
}

/// Two figures with different kinds of results: the mean FCT of every trace, from an evaluation, and queues over time.
#[test]
fn figures_of_one_switch_are_the_same_files() {
    let config = NdtConfig {
        traces: Some(1),
        figures: vec![NdtFigure::Tail, NdtFigure::Queues],
        resamples: 100,
        ..NdtConfig::new(learned(), 47_650, Scale::Quick, 3)
    };
    let here = files(&ndt::run(&config, Work::new(&|_| {})).unwrap());
    let there = with_hosts(2, |cluster| {
        files(&ndt::run(&config, Work::new(&|_| {}).on(Some(cluster))).unwrap())
    });
    assert!(here.contains_key("fig8c.csv") && here.contains_key("fig10.csv"));
    assert_eq!(there, here);
}

fn network() -> FabricConfig {
    let forest = ForestModel::built_in().unwrap().forest;
    FabricConfig {
        seeds: Some(1),
        settings: vec!["measure_ms=1".to_owned()],
        figures: vec!["6".to_owned()],
        forests: Some(Forests {
            leaf: forest.clone(),
            spine: forest,
            origin: "the built-in one twice".to_owned(),
        }),
        learned: Some(Learned::new(
            "ndt",
            &untrained(),
            &Manifest::new("leafspine-4x4", "", "fct", 1),
        )),
        revision: "a revision".to_owned(),
        ..FabricConfig::new(Scale::Quick, 1)
    }
}

#[test]
fn figures_of_networks_are_the_same_files_and_what_came_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let config = network();
    let paper = Paper::named("credence").unwrap();
    let here = paper.make(&config, None, &Work::new(&|_| {}));
    let parts = ResultCache::new(folder.path().join("kept"));

    // All hosts are lost after three answers.
    let cluster = Cluster::new(BUILD);
    let closing = cluster.clone();
    let given = AtomicU64::new(0);
    let hosts = InProcess::start(&cluster, BUILD, &[1], &measurements(), move |_, answer| {
        if given.fetch_add(1, Ordering::SeqCst) < 3 {
            return Some(answer);
        }
        closing.close("no node is left");
        None
    });
    let stopped = paper.make(
        &config,
        Some(&parts),
        &Work::new(&|_| {}).on(Some(&cluster)),
    );
    cluster.finish();
    hosts.unwrap().join();
    let stopped = stopped.err().unwrap();
    assert!(
        matches!(&stopped, PapersError::Eval(EvalError::Remote(why)) if why == "no node is left"),
        "{stopped}"
    );
    let kept = fs::read_dir(parts.folder()).unwrap().count();
    assert!(kept > 0);

    // It resumes from its kept results: only missing ones are requested.
    let asked = Mutex::new(0);
    let there = with_hosts(2, |cluster| {
        let progress = |progress: bufgym_eval::Progress<'_>| {
            *asked.lock().unwrap() = progress.total;
        };
        paper.make(
            &config,
            Some(&parts),
            &Work::new(&progress).on(Some(cluster)),
        )
    });
    assert_eq!(files(&there.unwrap()), files(&here.unwrap()));
    let all = fs::read_dir(parts.folder()).unwrap().count();
    assert!(kept < all, "{kept} of {all}");
    assert_eq!(all, asked.into_inner().unwrap());
}

#[test]
fn a_function_of_this_process_cannot_be_sent() {
    let own = Entrant::own("mine", "", || {
        Box::new(bufgym_env::control::FixedAlpha::new(3))
    });
    let config = EvalConfig {
        traces: 1,
        ..EvalConfig::new(small_scenario(), vec![own], 1)
    };
    let refused = with_hosts(u64::MAX, |cluster| {
        cluster.evaluate(&config, &|_| {}).unwrap_err()
    });
    assert!(refused.is_bad_input(), "{refused}");
    assert!(refused.to_string().contains("policy mine"), "{refused}");
}

#[test]
fn without_hosts_a_search_fails_with_the_reason() {
    let cluster = Cluster::new(BUILD);
    cluster.close("no node is left");
    let config = TuneConfig {
        simulations: 100,
        ..TuneConfig::new(small_scenario(), "dt".parse().unwrap(), 1)
    };
    let failed = tune(&config, &Backend::from(&cluster), &mut |_| ()).unwrap_err();
    assert!(
        matches!(failed, TrainError::Remote(RemoteError::Closed(why)) if why == "no node is left")
    );
}
