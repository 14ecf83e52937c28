use super::*;
use crate::ndt::setting::tests::context;
use crate::verdict::Grade;

fn run(starved: f64, unused: f64, alphas: Option<[f64; 4]>) -> QueuesRun {
    QueuesRun {
        starved,
        unused: (10.0 * unused, 10.0),
        alphas: alphas.map(|[before, after, light_before, light_after]| Alphas {
            heavier_before: vec![before],
            heavier_after: vec![after],
            lighter_before: vec![light_before],
            lighter_after: vec![light_after],
        }),
        bars: None,
        fine: None,
    }
}

/// Values of NDT, CS and DT: starved shares, unused shares; log2 α of NDT.
fn grades(starved: [f64; 3], unused: [f64; 3], alphas: [f64; 4]) -> Vec<Grade> {
    context(|context| {
        let runs = [0, 1, 2].map(|place| {
            let alphas = (place == 0).then_some(alphas);
            vec![run(starved[place], unused[place], alphas)]
        });
        let results = Results {
            runs: Runs {
                policies: context.policies(&RULES),
                runs: runs.into_iter().collect(),
            },
            ports: [0, 1],
            buffer_bytes: 256_000,
        };
        results.claims(context).iter().map(Claim::grade).collect()
    })
}

#[test]
fn what_the_paper_describes_agrees() {
    let found = grades([0.1, 0.3, 0.0], [0.2, 0.0, 0.3], [2.0, 0.0, 4.0, 3.0]);
    let expected = [
        Grade::InRanking,
        Grade::Agrees,
        Grade::InRanking,
        Grade::InRanking,
    ];
    assert_eq!(found, expected);
}

#[test]
fn the_opposite_differs() {
    let found = grades([0.5, 0.3, 0.0], [0.2, 0.9, 0.8], [0.0, 2.0, 4.0, 1.0]);
    assert_eq!(found, [Grade::Differs; 4]);
}

#[test]
fn bursts_and_ports_are_those_of_the_trace() {
    let scenario = Scenario::preset(PRESET).unwrap();
    let traces = context(|context| context.traces(&scenario, 2).unwrap());
    for numbered in traces {
        let ports = ports_of(&numbered.trace);
        assert!(ports[0] < ports[1]);
        let bursts = bursts_of(&numbered.trace, ports);
        let queries = numbered.trace.flows.iter().map(|flow| flow.query);
        let count = queries.max().unwrap() + 1;
        assert_eq!((bursts[0].len() + bursts[1].len()) as i64, count);
        let start = excerpt_start(&bursts);
        assert!(
            bursts
                .iter()
                .flatten()
                .any(|burst| burst.0 - start.0 <= LEAD.0)
        );
    }
}

#[test]
fn a_run_yields_bars_shares_and_alphas() {
    context(|context| {
        let mut scenario = Scenario::preset(PRESET).unwrap();
        scenario.set("flows=40").unwrap();
        let traces = context.traces(&scenario, 1).unwrap();
        let policies = context.policies(&RULES);
        let results = measure(context, &scenario, policies, &traces).unwrap();
        let [ndt, cs, dt] = [0, 1, 2].map(|place| &results.runs.runs[place][0]);
        assert!(ndt.alphas.is_some() && cs.alphas.is_none());
        assert!(dt.unused.0 / dt.unused.1 > cs.unused.0 / cs.unused.1.max(1.0));
        assert_eq!(results.drawings().unwrap().len(), 2);
        assert!(results.bars_table().rows.len() > 6);
        assert_eq!(results.table(context).rows.len(), 3);
    });
}
