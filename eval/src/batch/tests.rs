use super::*;

/// The mean FCT of a run.
#[derive(Serialize, Deserialize)]
struct MeanFct(f64);

impl Quantity for MeanFct {
    const NAME: &'static str = "mean-fct-of-tests";

    fn measure(run: &Running<'_>) -> Result<Self, SimError> {
        let outcome = run.policy.run(run.scenario, &run.trace.trace, None)?;
        Ok(MeanFct(outcome.summary.mean_fct_ms))
    }
}

fn run(batch: &Batch) -> Result<Vec<Vec<u8>>, BatchError> {
    batch.run(&Measurements::of::<MeanFct>())
}

fn scenario() -> Scenario {
    let mut scenario = Scenario::default();
    for setting in [
        "ports=4",
        "active_ports=2..4",
        "incast_degree=1..3",
        "flows=20..30",
    ] {
        scenario.set(setting).unwrap();
    }
    scenario
}

fn batch() -> Batch {
    let mut batch = Batch::new::<MeanFct>();
    let small = batch.add_scenario(&scenario());
    let mut other = scenario();
    other.set("buffer_bytes=50000").unwrap();
    let other = batch.add_scenario(&other);
    for policy in ["dt", "edt", "st"] {
        batch.add_policy(&policy.parse().unwrap()).unwrap();
    }
    for (scenario, policy, seed) in [(small, 0, 7), (other, 2, 7), (small, 1, 8), (small, 2, 7)] {
        batch.add(Simulation {
            scenario,
            policy,
            trace: seed,
            seed,
        });
    }
    batch
}

#[test]
fn parts_have_what_they_need_and_give_the_same_results() {
    let batch = batch();
    let whole = run(&batch).unwrap();
    assert_eq!(whole.len(), batch.len());
    let part = batch.part(&[3, 1]);
    assert_eq!((part.scenarios.len(), part.policies.len()), (2, 1));
    assert_eq!(run(&part).unwrap(), [whole[3].clone(), whole[1].clone()]);
    assert!(batch.part(&[]).is_empty());
}

#[test]
fn results_arrive_as_they_were_measured() {
    let batch = batch();
    let sent = postcard::to_stdvec(&batch).unwrap();
    let read: Batch = postcard::from_bytes(&sent).unwrap();
    let bytes = run(&read).unwrap();
    let policy: Entrant = "dt".parse().unwrap();
    let trace = traffic::generate(&scenario(), 7);
    let outcome = policy.run(&scenario(), &trace, None).unwrap();
    let there: f64 = postcard::from_bytes(&bytes[0]).unwrap();
    assert_eq!(there.to_bits(), outcome.summary.mean_fct_ms.to_bits());
}

#[test]
fn what_is_no_batch_is_refused() {
    let senseless = |change: &dyn Fn(&mut Batch)| {
        let mut batch = batch();
        change(&mut batch);
        run(&batch).unwrap_err()
    };
    for error in [
        senseless(&|batch| batch.scenarios[0] = "ports = \"many\"".to_owned()),
        senseless(&|batch| batch.quantity = "nothing".to_owned()),
        senseless(&|batch| batch.runs[0].policy = 3),
        senseless(&|batch| batch.runs[0].scenario = 2),
    ] {
        assert!(matches!(&error, BatchError::Senseless(_)), "{error}");
    }
    let unfit = senseless(&|batch| {
        let policy: Entrant = "abm:alphas=1/2/3".parse().unwrap();
        batch.policies[0] = policy.portable().unwrap();
    });
    assert!(matches!(&unfit, BatchError::Unfit(_)), "{unfit}");
}
