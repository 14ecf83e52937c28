//! Trainings on hosts of a cluster give the same bits as one in a single process, whatever happens to hosts and
//! messages.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bufgym_eval::evaluate::measurements;
use bufgym_train::remote::{Cluster, Host, HostId, InProcess, Message, Next, RemoteError};
use bufgym_train::{Controls, Status, TrainConfig, TrainError, TrainSummary, resume, train};

use super::{
    ROUND, assert_same_run, mixture, network, on_this_machine, run, small, small_with_start,
    to_rounds, try_resume,
};

const BUILD: &str = "this build";

fn on<'a>(cluster: &Cluster, stop: &'a AtomicBool) -> Controls<'a> {
    Controls {
        backend: cluster.into(),
        ..on_this_machine(stop)
    }
}

/// Does `work` with hosts with so many threads each; `fate` determines what happens to their answers.
fn with_hosts<T>(
    cluster: &Cluster,
    threads: &[usize],
    fate: impl Fn(&Message, Vec<u8>) -> Option<Vec<u8>> + Send + Sync + 'static,
    work: impl FnOnce(&Controls<'_>) -> T,
) -> T {
    let hosts = InProcess::start(cluster, BUILD, threads, &measurements(), fate).unwrap();
    let result = work(&on(cluster, &AtomicBool::new(false)));
    cluster.finish();
    hosts.join();
    result
}

fn run_on(
    config: TrainConfig,
    threads: &[usize],
    fate: impl Fn(&Message, Vec<u8>) -> Option<Vec<u8>> + Send + Sync + 'static,
) -> Result<TrainSummary, TrainError> {
    let cluster = Cluster::new(BUILD);
    with_hosts(&cluster, threads, fate, |controls| train(config, controls))
}

/// Delivers answers unchanged.
fn safely(_: &Message, answer: Vec<u8>) -> Option<Vec<u8>> {
    Some(answer)
}

fn log(out: &Path) -> String {
    fs::read_to_string(out.join("train.log")).unwrap()
}

#[test]
fn any_number_of_hosts_gives_the_same_run() {
    let root = tempfile::tempdir().unwrap();
    let config = |name: &str| {
        let mut config = small_with_start(&root.path().join(name), 20);
        config.validation.final_traces = 2;
        config
    };
    let whole = run(config("whole"));
    for (name, threads) in [
        ("one", &[2][..]),
        ("two", &[1, 3]),
        ("five", &[1, 1, 1, 1, 1]),
    ] {
        let found = run_on(config(name), threads, safely).unwrap();
        assert_same_run(&whole.out, &found.out, 20);
        assert_eq!(found.simulations, whole.simulations);
        let [ours, theirs] = [&whole, &found].map(|run| run.evaluation.clone().unwrap());
        for (ours, theirs) in ours.results.iter().zip(&theirs.results) {
            // The learned policy has the name of its folder.
            let policy = ours.policy.clone();
            assert_eq!(
                *ours,
                bufgym_eval::TraceResult {
                    policy,
                    ..theirs.clone()
                }
            );
        }
        assert_eq!(ours.results.len(), theirs.results.len());
        let rule = |run: &TrainSummary| fs::read(run.out.join("rule.json")).unwrap();
        assert_eq!(rule(&found), rule(&whole));
    }
}

#[test]
fn a_mixture_and_a_network_give_the_same_run_on_hosts() {
    let root = tempfile::tempdir().unwrap();
    for (name, config) in [
        ("mixture", mixture as fn(&Path, u64) -> TrainConfig),
        ("network", network),
    ] {
        let [here, there] =
            ["here", "there"].map(|side| root.path().join(format!("{name}-{side}")));
        run(config(&here, 20));
        run_on(config(&there, 20), &[2, 1], safely).unwrap();
        assert_same_run(&here, &there, 20);
    }
}

/// Trains on three hosts. The last one is lost after so many answers, of at least thirteen that it has to give: in the
/// first episodes, in the search for a rule or in the rounds.
#[test]
fn a_host_that_is_lost_in_the_middle_changes_nothing() {
    let root = tempfile::tempdir().unwrap();
    let whole = root.path().join("whole");
    run(small_with_start(&whole, 12));
    for answers in [0, 1, 2, 4, 8, 12] {
        let out = root.path().join(answers.to_string());
        let given = AtomicU64::new(0);
        let fate = move |message: &Message, answer: Vec<u8>| {
            let own = message.host == HostId(2);
            let lost = own && given.fetch_add(1, Ordering::SeqCst) >= answers;
            (!lost).then_some(answer)
        };
        run_on(small_with_start(&out, 12), &[1, 1, 1], fate).unwrap();
        assert_same_run(&whole, &out, 12);
        assert!(log(&out).contains("host in-process 2 is lost"), "{answers}");
    }
}

#[test]
fn a_damaged_answer_is_not_used_and_its_host_given_up() {
    let root = tempfile::tempdir().unwrap();
    let whole = root.path().join("whole");
    run(small(&whole, 12));
    type Damage = fn(&mut Vec<u8>);
    let damages: [(&str, Damage); 4] = [
        ("checksum", |answer| *answer.last_mut().unwrap() ^= 1),
        ("bytes and has", |answer| answer.truncate(30)),
        ("does not begin", |answer| answer.clear()),
        ("version 9 of the protocol", |answer| answer[8] = 9),
    ];
    for (complaint, damage) in damages {
        let out = root.path().join(complaint);
        let fate = move |message: &Message, mut answer: Vec<u8>| {
            if message.host == HostId(0) && message.id > 8 {
                damage(&mut answer);
            }
            Some(answer)
        };
        run_on(small(&out, 12), &[1, 1], fate).unwrap();
        assert_same_run(&whole, &out, 12);
        let log = log(&out);
        let told = log
            .lines()
            .find(|line| line.contains("in-process 0 is lost"));
        assert!(told.is_some_and(|line| line.contains(complaint)), "{log}");
    }
}

#[test]
fn a_training_goes_on_from_one_process_to_hosts_and_back() {
    let root = tempfile::tempdir().unwrap();
    let [whole, parts] = ["whole", "parts"].map(|name| root.path().join(name));
    run(small(&whole, 30));
    run(small(&parts, 8));
    let resumed = with_hosts(&Cluster::new(BUILD), &[1, 1], safely, |controls| {
        resume(&parts, &to_rounds(19), controls)
    });
    assert!(resumed.is_ok());
    try_resume(&parts, &to_rounds(30)).unwrap();
    assert_same_run(&whole, &parts, 30);
}

#[test]
fn without_hosts_the_training_ends_and_can_be_resumed() {
    let root = tempfile::tempdir().unwrap();
    let [whole, parts] = ["whole", "parts"].map(|name| root.path().join(name));
    run(small(&whole, 12));
    let cluster = Cluster::new(BUILD);
    let closing = cluster.clone();
    // Both hosts are lost in about the seventh round.
    let fate = move |message: &Message, answer| {
        if message.id < 16 {
            return Some(answer);
        }
        closing.close("no node is left");
        None
    };
    let mut config = small(&parts, 12);
    config.checkpoint.every_rounds = 1;
    let failed = with_hosts(&cluster, &[1, 1], fate, |controls| train(config, controls));
    let error = failed.unwrap_err();
    assert!(matches!(&error, TrainError::Remote(RemoteError::Closed(_))));
    assert_eq!(error.to_string(), "no node is left");
    assert!(!error.is_bad_input());
    let resumed = try_resume(&parts, &to_rounds(12)).unwrap();
    assert_eq!(
        (resumed.status, resumed.decisions),
        (Status::Finished, 12 * ROUND)
    );
    assert_same_run(&whole, &parts, 12);
}

#[test]
fn a_host_of_another_build_may_not_join() {
    let cluster = Cluster::new(BUILD);
    let other = Host::new("another build", 1, measurements()).unwrap();
    let refused = cluster.join(&other.hello("node 7").unwrap()).unwrap_err();
    assert!(matches!(&refused, RemoteError::Build { host, .. } if host == "node 7"));
    assert!(refused.to_string().contains("the same wheel"), "{refused}");
    let own = Host::new(BUILD, 1, measurements())
        .unwrap()
        .hello("node 8")
        .unwrap();
    let mut newer = own.clone();
    newer[8] += 1;
    let refused = cluster.join(&newer).unwrap_err();
    assert_eq!(refused, RemoteError::Protocol { theirs: 4, ours: 3 });
    assert_eq!(cluster.join(b"hello"), Err(RemoteError::NotAMessage));
    cluster.join(&own).unwrap();
}

#[test]
fn a_host_answers_a_request_that_it_cannot_read() {
    let mut host = Host::new(BUILD, 1, measurements()).unwrap();
    let hello = host.hello("mine").unwrap();
    for request in [&b""[..], b"something else", &hello] {
        assert!(host.serve(request).is_ok());
    }
    // The head recognises the answer as a refusal, and the host is useless.
    let cluster = Cluster::new(BUILD);
    let id = cluster.join(&hello).unwrap();
    let refusal = host.serve(b"something else").unwrap();
    let out = tempfile::tempdir().unwrap();
    let (learner, carrier) = (cluster.clone(), cluster.clone());
    let training = std::thread::spawn({
        let config = small(&out.path().join("run"), 1);
        move || train(config, &on(&learner, &AtomicBool::new(false)))
    });
    let request = loop {
        match carrier.next(Duration::from_secs(1)) {
            Next::Carry(message) => break message,
            Next::Nothing => {}
            Next::Over => panic!("the training has not begun"),
        }
    };
    assert_eq!(request.host, id);
    let refused = carrier.answer(request.id, &refusal).unwrap_err();
    assert!(matches!(refused, RemoteError::Refused { .. }), "{refused}");
    // The host is dropped already, and its late answer is ignored.
    assert_eq!(carrier.answer(request.id, &refusal), Ok(()));
    carrier.close("no host is left");
    assert!(training.join().unwrap().is_err());
}

#[test]
fn traffic_is_counted() {
    let root = tempfile::tempdir().unwrap();
    let cluster = Cluster::new(BUILD);
    let config = small(&root.path().join("run"), 3);
    with_hosts(&cluster, &[1], safely, |controls| train(config, controls)).unwrap();
    let traffic = cluster.traffic();
    // DT on two traces, the first episodes, three rounds, and two validations.
    assert!(traffic.requests >= 6, "{traffic:?}");
    assert!(
        traffic.sent_bytes > 3 * 190_000 && traffic.received_bytes > 0,
        "{traffic:?}"
    );
}
