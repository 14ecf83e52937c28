//! Settings that the paper and its code leave open or treat differently, in the order in which they are tried
//! if a claim differs.

use crate::variants::Variant;

/// The options in order.
pub(crate) const OPTIONS: &[Variant] = &[
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
