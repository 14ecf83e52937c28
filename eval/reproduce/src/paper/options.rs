//! Options of the published code and open choices of the papers, in the order in which they are tried if a
//! claim differs. If a figure cannot use an option, the option leaves out the figure and explains nothing.

use crate::variants::Variant;

/// Those of networks without lossless packets.
pub(crate) const OPTIONS: &[Variant] = &[
    Variant {
        name: "no output FIFO",
        settings: &["device_fifo_packets=0"],
    },
    Variant {
        name: "an uncounted output FIFO of one packet",
        settings: &["count_in_service=false", "device_fifo_packets=1"],
    },
    Variant {
        name: "unscheduled packets told by bytes",
        settings: &["unscheduled=first_bdp"],
    },
    Variant {
        name: "α 1024 for ABM’s unscheduled packets",
        settings: &["abm:alpha_unscheduled=1024"],
    },
    Variant {
        name: "both of these",
        settings: &["unscheduled=first_bdp", "abm:alpha_unscheduled=1024"],
    },
    Variant {
        name: "α 1 for acknowledgements as in the artefact",
        settings: &["queue_alpha=1,0.5", "dt:alpha=1"],
    },
    Variant {
        name: "in-cast flows that open their connections",
        settings: &["preconnected=false"],
    },
    Variant {
        name: "an initial window of ten segments",
        settings: &["init_cwnd=10"],
    },
    Variant {
        name: "all traffic to the next leaf",
        settings: &["demand=ring"],
    },
    Variant {
        name: "spines that draw on the buffer of leaves",
        settings: &["spine_pool=with_leaf"],
    },
    Variant {
        name: "ABM’s estimates as in its code",
        settings: &["abm:estimate=artefact"],
    },
    Variant {
        name: "slowdowns relative to the network’s own pipeline",
        settings: &["slowdown_base=pipeline"],
    },
    Variant {
        name: "marks from 65 packets on",
        settings: &["ecn_k_packets=65"],
    },
    Variant {
        name: "marks for all transports that answer them",
        settings: &["ecn_capable=all"],
    },
    Variant {
        name: "transports with a rate as in the ns-3 code, T_low of TIMELY among them",
        settings: &["transport_variant=ns3"],
    },
    Variant {
        name: "the loss recovery of ns-3",
        settings: &["recovery=ns3"],
    },
    Variant {
        name: "the CUBIC of ns-3",
        settings: &["recovery=ns3", "transport=cubic=>cubic-ns3"],
    },
    Variant {
        name: "the CUBIC of ns-3, and spines that draw on the buffer of leaves",
        settings: &[
            "recovery=ns3",
            "transport=cubic=>cubic-ns3",
            "spine_pool=with_leaf",
        ],
    },
];

/// Those of networks with lossless packets.
pub(crate) const LOSSLESS: &[Variant] = &[
    Variant {
        name: "the rules of the published code",
        settings: &["rules=ns3"],
    },
    Variant {
        name: "no guard of the pool",
        settings: &["pool_guard=false"],
    },
    Variant {
        name: "both of these",
        settings: &["rules=ns3", "pool_guard=false"],
    },
    Variant {
        name: "headroom for the lossless priority only",
        settings: &["headroom_priorities=1"],
    },
    Variant {
        name: "congested queues as ABM counts them",
        settings: &["congested=abm"],
    },
    Variant {
        name: "all traffic to the next leaf",
        settings: &["demand=ring"],
    },
    Variant {
        name: "packets that leave their queue when the line takes them",
        settings: &["count_in_service=false"],
    },
    Variant {
        name: "in-cast flows that open their connections",
        settings: &["preconnected=false"],
    },
    Variant {
        name: "the CUBIC and loss recovery of ns-3",
        settings: &[
            "recovery=ns3",
            "transport=cubic=>cubic-ns3",
            "incast_transport=cubic=>cubic-ns3",
        ],
    },
];

#[cfg(test)]
mod tests {
    use bufgym_sim::switch::PolicySpec;

    use super::*;
    use crate::Scale;
    use crate::fabric::FabricConfig;
    use crate::grid::{Common, GridPlan};
    use crate::paper::Paper;
    use crate::paper::tests::named;

    /// Counts the simulations of the paper's own series that an option leaves in a figure.
    fn simulations(paper: Paper, number: &str, option: Option<&Variant>) -> usize {
        let config = FabricConfig::new(Scale::Quick, 1);
        let mut figure = paper.planned(number, &config, "1").unwrap();
        figure.sweep.series.retain(|series| !series.added);
        figure.sweep.seeds = 1;
        if let Some(option) = option {
            figure.sweep.change(option.settings);
        }
        let mut plan = GridPlan::new(Common::default());
        figure.sweep.want(&mut plan);
        plan.simulations()
    }

    /// An invalid parameter would leave the policies unchanged, and the option would explain nothing.
    #[test]
    fn every_parameter_of_a_policy_is_one() {
        let settings = OPTIONS.iter().flat_map(|option| option.settings);
        let parameters: Vec<_> = settings
            .filter_map(|setting| setting.split_once(':'))
            .collect();
        for (name, parameter) in &parameters {
            let (policy, (key, value)) = (
                name.parse::<PolicySpec>(),
                parameter.split_once('=').unwrap(),
            );
            assert!(
                policy.unwrap().with(key, value).is_ok(),
                "{name}:{parameter}"
            );
        }
        assert_eq!(parameters.len(), 4);
    }

    /// Some figure of a paper can use each option, and the option keeps all simulations of ABM's Fig. 7.
    #[test]
    fn every_option_is_one_of_some_figure() {
        let figures = [(named("abm"), ["7", "9"]), (named("credence"), ["6", "8"])];
        for option in OPTIONS {
            let of = |(paper, numbers): &(Paper, [&str; 2])| {
                let left = numbers.map(|number| simulations(*paper, number, Some(option)));
                left.iter().sum::<usize>()
            };
            assert!(figures.iter().map(of).sum::<usize>() > 0, "{}", option.name);
        }
        let all = simulations(named("abm"), "7", None);
        for option in OPTIONS {
            let left = simulations(named("abm"), "7", Some(option));
            assert_eq!(left, all, "{}", option.name);
        }
    }
}
