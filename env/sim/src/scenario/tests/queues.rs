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
fn the_marking_threshold_that_is_set_last_counts() {
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
    let both = Scenario {
        ecn_threshold_bytes: 1,
        ecn_k_packets: 1,
        ..Scenario::default()
    };
    let error = both.validate().unwrap_err().to_string();
    assert!(
        error.contains("must be 0 where ecn_threshold_bytes"),
        "{error}"
    );
}

/// Two queues, and thresholds of 65 packets or of ten.
#[test]
fn the_presets_have_the_published_queues() {
    for (name, threshold, slow_start) in [
        ("abm-leafspine", 91_000, true),
        ("abm-artefact", 91_000, true),
        ("abm-artefact-mixed", 91_000, true),
        ("credence-leafspine", 14_000, false),
        ("credence-train", 14_000, false),
    ] {
        let scenario = Scenario::preset(name).unwrap();
        assert_eq!(scenario.queues_per_port, 2, "{name}");
        assert_eq!(scenario.ack_queue, AckQueue::Number(0), "{name}");
        assert_eq!(scenario.scheduler, Scheduler::Rr, "{name}");
        assert_eq!(scenario.flow_priority, FlowPriority::Fixed, "{name}");
        assert!(scenario.queue_alpha.is_empty(), "{name}");
        assert_eq!(scenario.mark_threshold_bytes(), Some(threshold), "{name}");
        assert_eq!(scenario.slow_start, slow_start, "{name}");
    }
}
