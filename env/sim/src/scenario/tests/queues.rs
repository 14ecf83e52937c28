use super::*;

fn changed(preset: &str, changes: &[&str]) -> Scenario {
    let mut scenario = Scenario::preset(preset).unwrap();
    for change in changes {
        scenario.set(change).unwrap();
    }
    scenario
}

#[test]
fn queues_that_cannot_be_are_refused_with_the_remedy() {
    for (changes, problem) in [
        (
            &["ack_queue=1"][..],
            "ack_queue = 1: ports have 1 queues; must be below that, or flow",
        ),
        (
            &["queues_per_port=2", "queue_alpha=1,2,3"],
            "queue_alpha = 1,2,3: 3 numbers, but ports have queues_per_port = 2; must be one for each",
        ),
        (
            &["scheduler=drr", "queue_weights=1,2"],
            "queue_weights = 1,2: 2 numbers, but ports have queues_per_port = 1",
        ),
        (
            &["scheduler=drr", "queue_weights=0.001"],
            "queue_weights = 0.001: must be from 0.01 to 1000 each",
        ),
        (
            &["queue_weights=2"],
            "queue_weights = 2: scheduler rr has no weights; must be empty",
        ),
        (
            &["strict_queues=9"],
            "strict_queues = 9: must be from 1 to 8",
        ),
        (
            &["recovery=ns3", "slow_start=false"],
            "slow_start = false: must be true where recovery is ns3",
        ),
    ] {
        let error = changed("ndt-16x1g", changes).validate().unwrap_err();
        let error = error.to_string();
        assert!(error.contains(problem), "{changes:?}: {error}");
        assert!(!error.contains('\n'), "{error}");
    }
    for (wrong, problem) in [
        ("ack_queue=first", "expected the number of a queue or flow"),
        ("queue_alpha=1;2", "separated by commas"),
        ("queue_alpha=0", "above 0"),
        ("scheduler=wrr", "one of"),
        ("ecn_k_packets=-1", "whole number"),
    ] {
        let error = set(wrong).unwrap_err();
        assert!(error.contains(problem), "{error}");
    }
    let list = parse("queue_alpha = [1, 2]").unwrap_err();
    assert!(list.contains("separated by commas"), "{list}");
}

#[test]
fn a_marking_threshold_takes_the_place_of_the_one_in_force() {
    let bytes = |changes: &[&str]| changed("ndt-16x1g", changes).mark_threshold_bytes();
    assert_eq!(bytes(&["ecn_k_packets=65", "mss=1400"]), Some(91_000));
    assert_eq!(
        bytes(&["ecn_k_packets=65", "ecn_threshold_bytes=5000"]),
        Some(5_000)
    );
    assert_eq!(
        bytes(&["ecn_threshold_bytes=5000", "ecn_k_packets=2"]),
        Some(2_920)
    );
    assert_eq!(bytes(&["ecn_k_packets=2", "ecn_k_packets=0"]), None);
    let both = Scenario::default().with(|scenario| {
        scenario.marking.threshold_bytes = 1;
        scenario.marking.threshold_packets = 1;
    });
    let error = both.validate().unwrap_err().to_string();
    assert!(
        error.contains("must be 0 where ecn_threshold_bytes"),
        "{error}"
    );
}

/// Two queues, eight in the run with three transports, and thresholds of 65 packets or of ten.
#[test]
fn the_presets_have_the_published_queues() {
    for (name, queues, threshold, slow_start) in [
        ("abm-leafspine", 2, 91_000, true),
        ("abm-artefact", 2, 91_000, true),
        ("abm-artefact-mixed", 8, 91_000, true),
        ("credence-leafspine", 2, 14_000, false),
        ("credence-train", 2, 14_000, false),
    ] {
        let scenario = Scenario::preset(name).unwrap();
        assert_eq!(scenario.queues.queues_per_port, queues, "{name}");
        assert_eq!(scenario.queues.ack_queue, AckQueue::Number(0), "{name}");
        assert_eq!(scenario.queues.scheduler, Scheduler::Rr, "{name}");
        assert_eq!(scenario.queues.flow_priority, FlowPriority::Fixed, "{name}");
        assert!(scenario.queues.alpha.is_empty(), "{name}");
        assert_eq!(scenario.mark_threshold_bytes(), Some(threshold), "{name}");
        assert_eq!(scenario.tcp.slow_start, slow_start, "{name}");
    }
}

#[test]
fn marks_need_someone_who_answers_them() {
    let bytes = |changes: &[&str]| changed("abm-artefact", changes).mark_threshold_bytes();
    assert_eq!(bytes(&[]), Some(91_000));
    assert_eq!(bytes(&["transport=cubic"]), None);
    assert_eq!(bytes(&["transport=cubic", "ecn_capable=all"]), Some(91_000));
    let mixed = ["transport=cubic", "second_transport=dctcp"];
    assert_eq!(bytes(&mixed), Some(91_000));
    assert_eq!(bytes(&["transport=timely", "ecn_capable=all"]), None);
    let red = [
        "marking=red",
        "ecn_red_kmin_bytes=7000",
        "ecn_red_kmax_bytes=9000",
    ];
    assert_eq!(bytes(&red), Some(7_000));
}

#[test]
fn random_marks_that_cannot_be_are_refused_with_the_remedy() {
    for (changes, problem) in [
        (
            &["marking=red"][..],
            "ecn_red_kmax_bytes = 0: marking red needs it; must be above 0",
        ),
        (
            &["ecn_red_kmin_bytes=2000", "ecn_red_kmax_bytes=1000"],
            "ecn_red_kmin_bytes = 2000: must be at most ecn_red_kmax_bytes, 1000",
        ),
        (
            &["ecn_red_pmax=0"],
            "ecn_red_pmax = 0: must be above 0 and at most 1",
        ),
        (
            &["ecn_red_pmax=1.5"],
            "ecn_red_pmax = 1.5: must be above 0 and at most 1",
        ),
        (
            &["ecn_red_weight=nan"],
            "ecn_red_weight = NaN: must be above 0 and at most 1",
        ),
    ] {
        let error = changed("ndt-16x1g", changes).validate().unwrap_err();
        let error = error.to_string();
        assert!(error.contains(problem), "{changes:?}: {error}");
        assert!(!error.contains('\n'), "{error}");
    }
    for wrong in ["marking=wred", "ecn_capable=cubic", "unscheduled=never"] {
        let error = set(wrong).unwrap_err();
        assert!(error.contains("one of"), "{error}");
    }
}
