//! Options of the published code and open choices of the papers, in the order in which they are tried if a
//! claim differs. If a figure cannot use an option, the option leaves out the figure and explains nothing.

use crate::variants::Variant;

/// Those of networks without lossless packets.
pub(crate) const OPTIONS: &[Variant] = &[
    Variant::new("no output FIFO", &["device_fifo_packets=0"]),
    Variant::new(
        "an uncounted output FIFO of one packet",
        &["count_in_service=false", "device_fifo_packets=1"],
    ),
    Variant::new(
        "unscheduled packets told by bytes",
        &["unscheduled=first_bdp"],
    ),
    Variant::new(
        "α 1024 for ABM’s unscheduled packets",
        &["abm:alpha_unscheduled=1024"],
    ),
    Variant::new(
        "both of these",
        &["unscheduled=first_bdp", "abm:alpha_unscheduled=1024"],
    ),
    Variant::new(
        "α 1 for acknowledgements as in the artefact",
        &["queue_alpha=1,0.5", "dt:alpha=1"],
    ),
    Variant::new(
        "in-cast flows that open their connections",
        &["preconnected=false"],
    ),
    Variant::new("an initial window of ten segments", &["init_cwnd=10"]),
    Variant::new("all traffic to the next leaf", &["demand=ring"]),
    Variant::new(
        "spines that draw on the buffer of leaves",
        &["spine_pool=with_leaf"],
    ),
    Variant::new("ABM’s estimates as in its code", &["abm:estimate=artefact"]),
    Variant::new(
        "slowdowns relative to the network’s own pipeline",
        &["slowdown_base=pipeline"],
    ),
    Variant::new("marks from 65 packets on", &["ecn_k_packets=65"]),
    Variant::new(
        "marks for all transports that answer them",
        &["ecn_capable=all"],
    ),
    Variant::new(
        "transports with a rate as in the ns-3 code, T_low of TIMELY among them",
        &["transport_variant=ns3"],
    ),
    Variant::new("the loss recovery of ns-3", &["recovery=ns3"]),
    Variant::new(
        "the CUBIC of ns-3",
        &["recovery=ns3", "transport=cubic=>cubic-ns3"],
    ),
    Variant::new(
        "the CUBIC of ns-3, and spines that draw on the buffer of leaves",
        &[
            "recovery=ns3",
            "transport=cubic=>cubic-ns3",
            "spine_pool=with_leaf",
        ],
    ),
];

/// Those of networks with lossless packets.
pub(crate) const LOSSLESS: &[Variant] = &[
    Variant::new("the rules of the published code", &["rules=ns3"]),
    Variant::new("no guard of the pool", &["pool_guard=false"]),
    Variant::new("both of these", &["rules=ns3", "pool_guard=false"]),
    Variant::new(
        "headroom for the lossless priority only",
        &["headroom_priorities=1"],
    ),
    Variant::new("congested queues as ABM counts them", &["congested=abm"]),
    Variant::new("all traffic to the next leaf", &["demand=ring"]),
    Variant::new(
        "packets that leave their queue when the line takes them",
        &["count_in_service=false"],
    ),
    Variant::new(
        "in-cast flows that open their connections",
        &["preconnected=false"],
    ),
    Variant::new(
        "the CUBIC and loss recovery of ns-3",
        &[
            "recovery=ns3",
            "transport=cubic=>cubic-ns3",
            "incast_transport=cubic=>cubic-ns3",
        ],
    ),
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
