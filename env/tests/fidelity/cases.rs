//! What is compared: a list of flows under a policy, a transport and a minimum RTO, and how close
//! the two simulators have to come.

use std::fmt;

use bufgym_env::scenario::{Scenario, ScenarioError};
use bufgym_env::switch::PolicySpec;

use crate::metrics::{METRICS, Metric};

/// A list of flows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum List {
    /// One flow at a time.
    Isolated,
    /// Two long flows to one host.
    TwoToOne,
    /// 600 web-search flows at load 0.5 and 25 in-cast queries of 8 flows of 40 kB.
    Mixed,
}

impl List {
    /// As in the names of the files.
    pub const fn name(self) -> &'static str {
        match self {
            List::Isolated => "isolated",
            List::TwoToOne => "2to1",
            List::Mixed => "mixed",
        }
    }
}

/// One simulation that ns-3 has done too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Case {
    /// The flows.
    pub list: List,
    /// The policy as ns-3's files name it: `st`, `cs`, `dt1` or `dt8`.
    pub policy: &'static str,
    /// The congestion control as ns-3's files name it.
    pub transport: &'static str,
    /// Minimum retransmission timeout, milliseconds.
    pub min_rto_ms: u64,
}

const fn case(list: List, policy: &'static str, transport: &'static str, min_rto_ms: u64) -> Case {
    Case {
        list,
        policy,
        transport,
        min_rto_ms,
    }
}

/// Flows alone in the network: the two simulators have to agree to the nanosecond.
pub const ISOLATED: [Case; 3] = [
    case(List::Isolated, "st", "newreno", 10),
    case(List::Isolated, "st", "cubic", 10),
    case(List::Isolated, "st", "dctcp", 10),
];

/// Flows that compete: the two have to agree on average.
pub const COMPETING: [Case; 12] = [
    case(List::TwoToOne, "st", "newreno", 10),
    case(List::TwoToOne, "st", "dctcp", 10),
    case(List::Mixed, "st", "newreno", 10),
    case(List::Mixed, "cs", "newreno", 10),
    case(List::Mixed, "dt1", "newreno", 10),
    case(List::Mixed, "dt8", "newreno", 10),
    case(List::Mixed, "st", "cubic", 10),
    case(List::Mixed, "st", "dctcp", 10),
    case(List::Mixed, "st", "newreno", 200),
    case(List::Mixed, "cs", "newreno", 200),
    case(List::Mixed, "dt1", "newreno", 200),
    case(List::Mixed, "dt8", "newreno", 200),
];

impl Case {
    /// The name of ns-3's result file without `fct_` and `.csv`.
    pub fn name(&self) -> String {
        let Case {
            list,
            policy,
            transport,
            min_rto_ms,
        } = self;
        match list {
            List::Isolated => format!("isolated_{transport}"),
            List::TwoToOne => format!("2to1_{policy}_{transport}"),
            List::Mixed => format!("mixed_{policy}_{transport}_rto{min_rto_ms}"),
        }
    }

    /// The settings that differ from the preset `ns3-16x1g`.
    pub fn settings(&self) -> Vec<String> {
        let transport = match self.transport {
            "cubic" => "cubic-ns3",
            other => other,
        };
        let mut settings = vec![
            format!("transport={transport}"),
            format!("min_rto_us={}", self.min_rto_ms * 1_000),
            "syn_timeout_us=10000".to_owned(),
        ];
        if self.transport == "dctcp" {
            settings.push("ecn_threshold_bytes=30000".to_owned());
            settings.push("ecn_uncounted_packets=2".to_owned());
        }
        settings
    }

    /// The scenario in which this project's simulator runs the case.
    ///
    /// # Errors
    /// When a setting of the case does not exist.
    pub fn scenario(&self) -> Result<Scenario, ScenarioError> {
        let mut scenario = Scenario::preset("ns3-16x1g")?;
        for setting in self.settings() {
            scenario.set(&setting)?;
        }
        scenario.validate()?;
        Ok(scenario)
    }

    /// The policy in this project's terms.
    pub fn policy_spec(&self) -> PolicySpec {
        let alpha = |alpha| PolicySpec::DynamicThreshold { alpha };
        match self.policy {
            "st" => PolicySpec::StaticThreshold,
            "cs" => PolicySpec::CompleteSharing,
            "dt1" => alpha(1.0),
            "dt8" => alpha(8.0),
            other => unreachable!("no case has the policy {other}"),
        }
    }

    /// The largest relative difference of a metric that is still agreement; `None` for those that
    /// are shown only.
    pub fn tolerance(&self, metric: Metric) -> Option<f64> {
        let rare_timeouts_decide = self.min_rto_ms >= 200;
        match metric {
            Metric::Mean if rare_timeouts_decide => Some(0.10),
            Metric::Mean => Some(0.03),
            Metric::P50 if rare_timeouts_decide => Some(0.10),
            Metric::P50 => Some(0.05),
            Metric::InCast => Some(0.10),
            Metric::Drops => Some(0.10),
            Metric::Forwarded => Some(0.005),
            Metric::P99 | Metric::ShortWeb | Metric::LongWeb | Metric::Marks => None,
        }
    }

    /// ns-3's own mean and standard deviation over six runs with jittered start times, where they
    /// are known.
    pub fn jittered_reference(&self, metric: Metric) -> Option<(f64, f64)> {
        let row = JITTERED.iter().find(|row| {
            self.list == List::Mixed
                && self.transport == "newreno"
                && (row.policy, row.min_rto_ms) == (self.policy, self.min_rto_ms)
        })?;
        let column = METRICS.iter().position(|known| *known == metric)?;
        row.milliseconds.get(column).copied()
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.name())
    }
}

/// ns-3 3.37 on the mixed list, six times with start times jittered by up to 20 µs.
struct Jittered {
    policy: &'static str,
    min_rto_ms: u64,
    /// Mean and standard deviation, in the order of [`METRICS`].
    milliseconds: [(f64, f64); 6],
}

const JITTERED: [Jittered; 3] = [
    Jittered {
        policy: "dt1",
        min_rto_ms: 10,
        milliseconds: [
            (29.92, 0.28),
            (4.24, 0.10),
            (374.0, 18.0),
            (2.54, 0.06),
            (116.5, 1.1),
            (4.70, 0.27),
        ],
    },
    Jittered {
        policy: "st",
        min_rto_ms: 10,
        milliseconds: [
            (31.16, 0.12),
            (3.77, 0.13),
            (447.0, 10.0),
            (2.15, 0.08),
            (121.4, 0.4),
            (6.37, 0.66),
        ],
    },
    Jittered {
        policy: "dt1",
        min_rto_ms: 200,
        milliseconds: [
            (33.89, 1.10),
            (4.28, 0.11),
            (409.0, 19.0),
            (3.10, 0.46),
            (125.1, 2.0),
            (9.91, 3.97),
        ],
    },
];
