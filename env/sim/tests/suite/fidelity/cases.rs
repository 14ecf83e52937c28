//! Cases of the comparison: a list of flows under a policy, a transport and a minimum RTO.

use std::fmt;

use bufgym_sim::scenario::{Scenario, ScenarioError};
use bufgym_sim::switch::PolicySpec;

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
    /// Returns the name used in the names of the files.
    pub const fn name(self) -> &'static str {
        match self {
            List::Isolated => "isolated",
            List::TwoToOne => "2to1",
            List::Mixed => "mixed",
        }
    }
}

/// Network that the hosts are attached to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Network {
    /// A switch with 16 hosts.
    OneSwitch,
    /// Four leaves of four hosts and two spines, with links of `gbps` Gbit/s between them.
    Fabric {
        /// Rate of a link between switches, Gbit/s.
        gbps: u64,
    },
}

impl Network {
    /// Returns the name used in the names of the files.
    fn name(self) -> String {
        match self {
            Network::OneSwitch => String::new(),
            Network::Fabric { gbps } => format!("fab{gbps}g_"),
        }
    }

    /// Returns the folder of ns-3's results.
    pub const fn folder(self) -> &'static str {
        match self {
            Network::OneSwitch => ".",
            Network::Fabric { .. } => "fabric",
        }
    }

    /// Returns the settings that differ from the preset `ns3-16x1g`.
    fn settings(self) -> Vec<String> {
        match self {
            Network::OneSwitch => Vec::new(),
            Network::Fabric { gbps } => vec![
                "topology=leafspine".to_owned(),
                format!("fabric_rate_bps={gbps}e9"),
                "ecmp=dst_mod".to_owned(),
            ],
        }
    }
}

/// A simulation that was also run in ns-3.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Case {
    /// The switches.
    pub network: Network,
    /// The flows.
    pub list: List,
    /// The policy by its name in ns-3's files: `st`, `cs`, `dt1` or `dt8`.
    pub policy: &'static str,
    /// The congestion control by its name in ns-3's files.
    pub transport: &'static str,
    /// Minimum retransmission timeout, milliseconds.
    pub min_rto_ms: u64,
}

const fn case(list: List, policy: &'static str, transport: &'static str, min_rto_ms: u64) -> Case {
    Case {
        network: Network::OneSwitch,
        list,
        policy,
        transport,
        min_rto_ms,
    }
}

const fn fabric(
    gbps: u64,
    list: List,
    policy: &'static str,
    transport: &'static str,
    min_rto_ms: u64,
) -> Case {
    Case {
        network: Network::Fabric { gbps },
        ..case(list, policy, transport, min_rto_ms)
    }
}

/// Flows alone in the network.
pub const ISOLATED: [Case; 3] = [
    case(List::Isolated, "st", "newreno", 10),
    case(List::Isolated, "st", "cubic", 10),
    case(List::Isolated, "st", "dctcp", 10),
];

/// Flows that compete.
pub const COMPETING: [Case; 14] = [
    case(List::TwoToOne, "st", "newreno", 10),
    case(List::TwoToOne, "st", "dctcp", 10),
    case(List::Mixed, "st", "newreno", 10),
    case(List::Mixed, "cs", "newreno", 10),
    case(List::Mixed, "dt1", "newreno", 10),
    case(List::Mixed, "dt8", "newreno", 10),
    case(List::Mixed, "st", "cubic", 10),
    case(List::Mixed, "dt1", "cubic", 10),
    case(List::Mixed, "dt8", "cubic", 10),
    case(List::Mixed, "st", "dctcp", 10),
    case(List::Mixed, "st", "newreno", 200),
    case(List::Mixed, "cs", "newreno", 200),
    case(List::Mixed, "dt1", "newreno", 200),
    case(List::Mixed, "dt8", "newreno", 200),
];

/// Flows alone in a fabric.
pub const ISOLATED_IN_FABRIC: [Case; 6] = [
    fabric(1, List::Isolated, "st", "newreno", 10),
    fabric(1, List::Isolated, "st", "cubic", 10),
    fabric(1, List::Isolated, "st", "dctcp", 10),
    fabric(2, List::Isolated, "st", "newreno", 10),
    fabric(2, List::Isolated, "st", "cubic", 10),
    fabric(2, List::Isolated, "st", "dctcp", 10),
];

/// Flows that compete in a fabric.
pub const COMPETING_IN_FABRIC: [Case; 16] = [
    fabric(1, List::Mixed, "st", "newreno", 10),
    fabric(1, List::Mixed, "cs", "newreno", 10),
    fabric(1, List::Mixed, "dt1", "newreno", 10),
    fabric(1, List::Mixed, "st", "cubic", 10),
    fabric(1, List::Mixed, "st", "dctcp", 10),
    fabric(1, List::Mixed, "st", "newreno", 200),
    fabric(1, List::Mixed, "cs", "newreno", 200),
    fabric(1, List::Mixed, "dt1", "newreno", 200),
    fabric(2, List::Mixed, "st", "newreno", 10),
    fabric(2, List::Mixed, "cs", "newreno", 10),
    fabric(2, List::Mixed, "dt1", "newreno", 10),
    fabric(2, List::Mixed, "st", "cubic", 10),
    fabric(2, List::Mixed, "st", "dctcp", 10),
    fabric(2, List::Mixed, "st", "newreno", 200),
    fabric(2, List::Mixed, "cs", "newreno", 200),
    fabric(2, List::Mixed, "dt1", "newreno", 200),
];

/// Settings of ns-3's marking queue. It counts packets without the 2 bytes of the PPP header; those
/// take time on the line but no buffer.
const RED_QUEUE: [&str; 6] = [
    "ecn_threshold_bytes=30000",
    "ecn_uncounted_packets=2",
    "header_bytes=52",
    "ack_bytes=52",
    "syn_bytes=56",
    "overhead_bytes=2",
];

impl Case {
    /// Returns the name of ns-3's result file without `fct_` and `.csv`.
    pub fn name(&self) -> String {
        let Case {
            network,
            list,
            policy,
            transport,
            min_rto_ms,
        } = self;
        let network = network.name();
        match list {
            List::Isolated => format!("isolated_{network}{transport}"),
            List::TwoToOne => format!("2to1_{network}{policy}_{transport}"),
            List::Mixed => format!("mixed_{network}{policy}_{transport}_rto{min_rto_ms}"),
        }
    }

    /// Returns the settings that differ from the preset `ns3-16x1g`.
    pub fn settings(&self) -> Vec<String> {
        let transport = match self.transport {
            "cubic" => "cubic-ns3",
            other => other,
        };
        let mut settings = vec![
            format!("transport={transport}"),
            format!("min_rto_us={}", self.min_rto_ms * 1_000),
        ];
        settings.extend(self.network.settings());
        if self.transport == "dctcp" {
            settings.extend(RED_QUEUE.map(str::to_owned));
        }
        settings
    }

    /// Returns the scenario in which this project's simulator runs the case.
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

    /// Returns the policy in this project's terms.
    pub fn policy_spec(&self) -> PolicySpec {
        match self.policy {
            "st" => PolicySpec::named("st"),
            "cs" => PolicySpec::named("cs"),
            "dt1" => PolicySpec::baseline(),
            "dt8" => PolicySpec::named("dt")
                .with("alpha", "8")
                .expect("a factor above 0"),
            other => unreachable!("no case has the policy {other}"),
        }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.name())
    }
}
