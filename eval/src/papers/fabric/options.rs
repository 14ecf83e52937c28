//! Options of the artefacts and open choices of the papers, in the order in which they are tried where a
//! claim differs. What this version does not have leaves its figures out, and so explains nothing.

use crate::papers::variants::Variant;

/// One option after the other.
pub const OPTIONS: &[Variant] = &[
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
        name: "slowdowns relative to the network’s own pipeline",
        settings: &["slowdown_base=pipeline"],
    },
    Variant {
        name: "the loss recovery of ns-3",
        settings: &["recovery=ns3"],
    },
];
