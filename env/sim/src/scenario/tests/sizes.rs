use proptest::prelude::*;

use crate::rng::{stream, uniform};
use crate::scenario::{SizeDistribution, Workload};

fn parse(text: &str) -> Result<SizeDistribution, String> {
    SizeDistribution::from_csv(text, "sizes.csv").map_err(|error| error.to_string())
}

#[test]
fn the_compiled_in_distributions_have_their_documented_means() {
    for (workload, mean) in [
        (Workload::WebSearch, 1_711_250.0),
        (Workload::DataMining, 12_658_199.0),
        (Workload::FbHadoop, 120_421.0),
        (Workload::WebSearchAbm, 1_711_222.5),
    ] {
        let computed = workload.distribution().mean();
        assert!((computed - mean).abs() < 0.51, "{workload}: {computed}");
    }
}

#[test]
fn every_workload_parses_and_its_short_names_differ() {
    let mut names: Vec<_> = Workload::ALL
        .iter()
        .map(|workload| workload.short_name())
        .collect();
    assert!(
        Workload::ALL
            .iter()
            .all(|workload| workload.distribution().mean() > 1_000.0)
    );
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), Workload::ALL.len());
}

#[test]
fn sizes_are_interpolated_and_rounded_down_to_at_least_one_byte() {
    let sizes = parse("bytes,cdf\n0,0\n100,0.5\n200,1\n").unwrap();
    assert_eq!(sizes.quantile(0.25), 50.0);
    assert_eq!(sizes.quantile(0.75), 150.0);
    assert_eq!(sizes.sample(0.0), 1);
    assert_eq!(sizes.sample(0.003), 1);
    assert_eq!(sizes.sample(0.129), 25);
    assert_eq!(sizes.sample(0.999_999), 199);
    assert_eq!(sizes.quantile(1.0), 200.0);
}

#[test]
fn a_step_of_the_distribution_gives_one_size() {
    let sizes = parse("500,0\n500,1").unwrap();
    assert_eq!(
        (sizes.mean(), sizes.sample(0.0), sizes.sample(0.99)),
        (500.0, 500, 500)
    );
}

#[test]
fn sampled_sizes_have_the_mean_of_the_distribution() {
    let mut rng = stream(11, "sizes", 0);
    let sizes = Workload::WebSearch.distribution();
    let count = 400_000;
    let mean = (0..count)
        .map(|_| sizes.sample(uniform(&mut rng)) as f64)
        .sum::<f64>()
        / f64::from(count);
    // The standard deviation is 4.1 MB, that of the mean 6.5 kB: 0.4 %.
    assert!((mean / sizes.mean() - 1.0).abs() < 0.015, "{mean}");
}

#[test]
fn expected_values_match_the_exact_mean() {
    for workload in Workload::ALL {
        let sizes = workload.distribution();
        let mean = sizes.expected(|size| size as f64);
        // Rounding down to whole bytes takes half a byte.
        assert!(
            (mean + 0.5 - sizes.mean()).abs() < 1e-5 * sizes.mean() + 0.1,
            "{workload}: {mean}"
        );
        assert!((sizes.expected(|_| 1.0) - 1.0).abs() < 1e-12);
    }
}

#[test]
fn points_that_make_no_distribution_are_refused_with_their_line() {
    for (text, problem) in [
        ("", "sizes.csv:1: a distribution needs at least two points"),
        (
            "# only\n0,0\n",
            "sizes.csv:2: a distribution needs at least two points",
        ),
        ("0,0\n10;1\n", "sizes.csv:2: `10;1` is not bytes,cdf"),
        ("0,0\n10,1,2\n", "sizes.csv:2: `10,1,2` is not bytes,cdf"),
        (
            "0,0.1\n10,1\n",
            "sizes.csv:1: the first cdf is 0.1; it must be 0",
        ),
        ("0,0\n\n10,0.9\n", "sizes.csv:3: the last cdf must be 1"),
        (
            "0,0\n10,0.5\n9,1\n",
            "sizes.csv:3: bytes go down from 10 to 9",
        ),
        (
            "0,0\n10,0.5\n11,0.5\n12,1\n",
            "sizes.csv:3: cdf 0.5 after 0.5",
        ),
        ("0,0\n10,1.5\n", "sizes.csv:2: cdf 1.5 after 0"),
        ("0,0\n10,nan\n", "sizes.csv:2: cdf NaN after 0"),
        ("-1,0\n10,1\n", "sizes.csv:1: a size of -1 bytes"),
        ("0,0\ninf,1\n", "sizes.csv:2: a size of inf bytes"),
        ("nan,0\n1,1\n", "sizes.csv:1: a size of NaN bytes"),
    ] {
        let error = parse(text).unwrap_err();
        assert!(error.starts_with(problem), "{text:?}: {error}");
    }
}

proptest! {
    #[test]
    fn quantiles_never_go_down_and_stay_within_the_sizes(a in 0.0..=1.0, b in 0.0..=1.0) {
        for workload in Workload::ALL {
            let sizes = workload.distribution();
            let (low, high) = (f64::min(a, b), f64::max(a, b));
            prop_assert!(sizes.quantile(low) <= sizes.quantile(high));
            prop_assert!(sizes.sample(low) >= 1);
            prop_assert!(sizes.quantile(high) <= sizes.quantile(1.0));
        }
    }

    #[test]
    fn any_text_is_parsed_or_refused(text in "([0-9]{1,4},[0-9.]{1,4}\n|\\PC{0,8}\n){0,8}") {
        if let Ok(sizes) = parse(&text) {
            prop_assert!(sizes.mean().is_finite());
            prop_assert!(sizes.sample(0.5) >= 1);
        }
    }
}
