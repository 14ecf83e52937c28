use bufgym_util::rng::{stream, uniform};
use proptest::prelude::*;

use crate::scenario::{SizeDistribution, Workload};

fn parse(text: &str) -> Result<SizeDistribution, String> {
    SizeDistribution::from_text(text, "sizes.csv").map_err(|error| error.to_string())
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
        // Rounding down to whole bytes costs half a byte on average.
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
        (
            "",
            "sizes.csv:1:1: a distribution needs at least two points",
        ),
        (
            "# only\n0,0\n",
            "sizes.csv:2:1: a distribution needs at least two points",
        ),
        ("0,0\n10;1\n", "sizes.csv:2:1: `10;1` is not bytes and cdf"),
        (
            "0,0\n  10,1,2\n",
            "sizes.csv:2:3: `10,1,2` is not bytes and cdf",
        ),
        (
            "0 0\n10 50 2\n",
            "sizes.csv:2:1: `10 50 2` is not bytes and cdf",
        ),
        ("0 0\n10\n", "sizes.csv:2:1: `10` is not bytes and cdf"),
        (
            "0,0.1\n10,1\n",
            "sizes.csv:1:1: the first cdf is 0.1; it must be 0",
        ),
        (
            "0,0\n\n10,0.9\n",
            "sizes.csv:3:1: the last cdf must be 1, or 100",
        ),
        ("0 0\n10 50\n20 99\n", "sizes.csv:2:1: cdf 50 after 0"),
        (
            "0,0\n10,0.5\n9,1\n",
            "sizes.csv:3:1: bytes go down from 10 to 9",
        ),
        (
            "0,0\n10,0.5\n11,0.4\n12,1\n",
            "sizes.csv:3:1: cdf 0.4 after 0.5",
        ),
        ("0,0\n10,1.5\n", "sizes.csv:2:1: cdf 1.5 after 0"),
        ("0,0\n10,nan\n", "sizes.csv:2:1: cdf NaN after 0"),
        ("-1,0\n10,1\n", "sizes.csv:1:1: a size of -1 bytes"),
        ("0,0\ninf,1\n", "sizes.csv:2:1: a size of inf bytes"),
        ("nan,0\n1,1\n", "sizes.csv:1:1: a size of NaN bytes"),
        (
            "0,0\n1000000000001,1\n",
            "sizes.csv:2:1: a size of 1000000000001 bytes",
        ),
        (
            "0,0\n0,1\n9,1\n",
            "sizes.csv:3:1: the size with cdf 1 must be at least 1 byte",
        ),
        (
            &"0,0\n".repeat(4_097),
            "sizes.csv:4097:1: more than 4096 points",
        ),
    ] {
        let error = parse(text).unwrap_err();
        assert!(error.starts_with(problem), "{text:?}: {error}");
    }
}

/// HPCC's traffic generator reads percent.
#[test]
fn a_distribution_of_a_peer_is_read_in_percent_or_as_a_share() {
    let expected = parse("1000,0\n10000,0.5\n1000000,1\n").unwrap();
    for text in [
        "0 0\n1000 0\n10000 50\n1000000 100\n",
        "\t0   0\r\n\r\n1000\t0\r\n10000\t50.0\r\n1000000\t100\r\n",
        "0 0\n1000 0\n10000 0.5\n1000000 1",
        "1000 0\n10000 50\n1000000 100\n2000000 100\n",
    ] {
        assert_eq!(parse(text).unwrap(), expected, "{text:?}");
    }
    assert_eq!(expected.sample(0.0), 1_000);
    assert_eq!(expected.mean(), 0.5 * 5_500.0 + 0.5 * 505_000.0);
    assert_eq!(expected.to_string(), "1000:0 10000:0.5 1000000:1");
}

/// No flow has a size between points with the same probability.
#[test]
fn a_level_part_of_the_distribution_gives_no_size() {
    let sizes = parse("0 0\n100 50\n900 50\n1000 100\n").unwrap();
    let samples = (0..1_000).map(|k| sizes.sample(f64::from(k) / 1e3));
    let (small, large): (Vec<u64>, Vec<u64>) = samples.partition(|size| *size <= 100);
    assert_eq!((small.len(), large.len()), (500, 500));
    assert!(large.iter().all(|size| (900..1_000).contains(size)));
    assert_eq!(sizes.quantile(1.0), 1_000.0);
}

#[test]
fn workloads_of_a_file_belong_to_the_scenario() {
    use crate::scenario::{Scenario, Workloads};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cdf.txt");
    std::fs::write(&path, "0 0\n1000 0\n10000 50\n1000000 100\n").unwrap();
    let mut scenario = Scenario::default();
    scenario
        .set(&format!("workload={}", path.display()))
        .unwrap();
    std::fs::remove_file(&path).unwrap();
    let text = "1000:0 10000:0.5 1000000:1";
    assert_eq!(scenario.traffic.workload.to_string(), text);
    assert!(
        scenario
            .to_toml()
            .contains(&format!("workload = \"{text}\""))
    );
    let again = Scenario::from_toml_str(&scenario.to_toml(), "again.toml").unwrap();
    assert_eq!(scenario.traffic.workload, again.traffic.workload);
    // 255.25 kB at load 0.5 of 1 Gbit/s.
    let sizes = scenario.traffic.workload.iter().next().unwrap();
    let gap = scenario.flow_gap_seconds(sizes.distribution(), 0.5);
    assert!((gap - 8.0 * 255_250.0 / 0.5e9).abs() < 1e-9, "{gap}");
    let mut other = scenario.clone();
    other.set("workload=1000:0 10000:0.4 1000000:1").unwrap();
    assert_ne!(scenario, other);

    let both: Workloads = "1:0 5:1, fb_hadoop".parse().unwrap();
    assert_eq!(
        (both.count(), both.to_string()),
        (2, "fb_hadoop,1:0 5:1".to_owned())
    );
    for (text, problem) in [
        ("0:0 5:1,0:0 6:1", "two distributions without a name"),
        (
            "cdf.txt",
            "`cdf.txt`: a file is read with --set workload=FILE; here its points",
        ),
        ("0:0 9:0.5", "point:2:1: the last cdf must be 1, or 100"),
        ("0:0:0 9:1", "point:1:1: `0,0:0` is not bytes and cdf"),
        ("cdf", "`cdf` is not one of web_search, "),
    ] {
        let error = text.parse::<Workloads>().unwrap_err().to_string();
        assert!(error.starts_with(problem), "{text}: {error}");
    }
    let missing = Workloads::read("no/such.txt").unwrap_err().to_string();
    assert!(
        missing.starts_with("no/such.txt: cannot read the size distribution: "),
        "{missing}"
    );
    let folder = Workloads::read(&folder.path().display().to_string()).unwrap_err();
    assert!(
        folder.to_string().contains("not a regular file"),
        "{folder}"
    );
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
    fn any_text_is_parsed_or_refused(text in "([0-9]{1,4}[, ][0-9.]{1,4}\n|\\PC{0,8}\n){0,8}") {
        if let Ok(sizes) = parse(&text) {
            prop_assert!(sizes.mean() > 0.0 && sizes.mean().is_finite());
            for u in [0.0, 0.5, 1.0] {
                prop_assert!(sizes.quantile(u).is_finite() && sizes.sample(u) >= 1);
            }
            let again: SizeDistribution = sizes.to_string().parse().unwrap();
            prop_assert_eq!(again, sizes);
        }
    }
}
