//! The scenario settings that are a choice among names.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A text that is not a valid name of a setting's value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not one of {}{}", crate::input::excerpt(.given), .known.join(", "), crate::input::suggestion(.given, .known))]
pub struct UnknownName {
    /// The text given.
    pub given: String,
    /// The valid names.
    pub known: Vec<&'static str>,
}

/// Declares an enum whose values have names. The names are the same in TOML, JSON, CSV and on the
/// command line.
macro_rules! named {
    ($(#[$meta:meta])* $type:ident { $($(#[$variant_meta:meta])* $variant:ident = $name:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(into = "&'static str", try_from = "String")]
        pub enum $type {
            $($(#[$variant_meta])* $variant,)+
        }

        impl $type {
            /// Every value, in the order of the declaration.
            pub const ALL: &'static [$type] = &[$($type::$variant,)+];

            /// The name used in files and on the command line.
            pub const fn name(self) -> &'static str {
                match self {
                    $($type::$variant => $name,)+
                }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }

        impl FromStr for $type {
            type Err = UnknownName;

            fn from_str(text: &str) -> Result<$type, UnknownName> {
                $type::ALL.iter().copied().find(|value| value.name() == text).ok_or_else(|| UnknownName {
                    given: text.to_owned(),
                    known: $type::ALL.iter().map(|value| value.name()).collect(),
                })
            }
        }

        impl From<$type> for &'static str {
            fn from(value: $type) -> &'static str {
                value.name()
            }
        }

        impl TryFrom<String> for $type {
            type Error = UnknownName;

            fn try_from(text: String) -> Result<$type, UnknownName> {
                text.parse()
            }
        }
    };
}

pub(super) use named;

named! {
    /// Size of a spine switch's buffer, if `buffer_bytes_per_port_gbps` is set.
    SpineBuffer {
        /// In proportion to the spine's own ports.
        Own = "own",
        /// As large as the buffer of a leaf switch.
        Leaf = "leaf",
    }
}

named! {
    /// Buffer that the ports of a spine switch draw on.
    SpinePool {
        /// The buffer of the spine.
        Own = "own",
        /// The buffer of the leaf that a port leads to, as in the published code of ABM (SIGCOMM 2022).
        WithLeaf = "with_leaf",
    }
}

named! {
    /// Choice of the path for a packet among several equal ones.
    Ecmp {
        /// A hash of hosts, flow and direction (RFC 2992).
        Hash = "hash",
        /// The number of the destination, modulo the number of links; like ns-3's static routes.
        DstMod = "dst_mod",
        /// The number of the flow in the order of starts, modulo the number of links.
        FlowMod = "flow_mod",
        /// Packets take the links in turn, so that those of a flow overtake each other.
        Spray = "spray",
    }
}

named! {
    /// Salt that makes the hash of flows differ from switch to switch.
    EcmpSalt {
        /// The number of the switch, so that choices at different switches are independent.
        Switch = "switch",
        /// No salt: all switches reduce the same hash. If a leaf has several links to a spine, the
        /// choice of the spine then determines which of them are used on the way down, and the others
        /// stay idle.
        None = "none",
    }
}

named! {
    /// Queues that generated flows use.
    FlowPriority {
        /// All queues in turn.
        InTurn = "in_turn",
        /// Queue `background_priority`.
        Fixed = "fixed",
        /// Each flow a random queue from 1 on.
        RandomPerFlow = "random_per_flow",
        /// The flows of a leaf's hosts one random queue from 1 on.
        RandomPerLeaf = "random_per_leaf",
    }
}

named! {
    /// Pattern of senders and receivers.
    Demand {
        /// Active ports receive flows, as `traffic` says.
        Ports = "ports",
        /// The hosts of a leaf send to those of the next leaf, so that all traffic crosses spines.
        Ring = "ring",
        /// Hosts send to the hosts of all other leaves.
        OtherLeaf = "other_leaf",
        /// Hosts send to all other hosts.
        Uniform = "uniform",
    }
}

named! {
    /// Time that a flow's completion time is divided by in its slowdown.
    SlowdownBase {
        /// The propagation delay of the longest round trip and the time of the payload on the line of
        /// a host (ABM, SIGCOMM 2022; Credence, NSDI 2024).
        Paper = "paper",
        /// The time of its packets through the empty network, whatever its window.
        Pipeline = "pipeline",
        /// The completion time of the flow alone in the network, with its transport.
        Alone = "alone",
        /// The longest round trip of a packet without headers and the time of the flow on the line of
        /// a host, that of RDMA with headers (Reverie, NSDI 2024).
        Reverie = "reverie",
    }
}

named! {
    /// Variant of a transport with a rate.
    TransportVariant {
        /// The variant of the paper.
        Paper = "paper",
        /// The variant of the ns-3 code that ABM (SIGCOMM 2022) and Credence (NSDI 2024) were evaluated
        /// with.
        Ns3 = "ns3",
    }
}

named! {
    /// Rule by which CUBIC leaves slow start before a loss.
    HyStartRule {
        /// HyStart++: five rounds of a quarter of the growth once delay has grown from round to round
        /// (RFC 9406).
        Rfc9406 = "rfc9406",
        /// HyStart of Linux: at once, by the length of a train of acknowledgements or by growing delay.
        Linux = "linux",
    }
}

named! {
    /// Rules in which Linux differs from the RFCs.
    TcpRules {
        /// The rules of the RFCs.
        Rfc = "rfc",
        /// The rules of Linux: a loss reduces the window and not the outstanding data, a recovery slows
        /// down while losses continue, the timer restarts with a retransmission of the first segment,
        /// and CUBIC grows by rules of its own.
        Linux = "linux",
    }
}

named! {
    /// Packets that count as unscheduled: sent before the network could signal anything.
    Unscheduled {
        /// Data that is sent before the flow's first acknowledgement of data arrives (ABM, SIGCOMM
        /// 2022, §3.3).
        FirstRtt = "first_rtt",
        /// Data of a sender that has sent fewer bytes than the line of a host carries in a base
        /// round trip, retransmissions among them, and all packets without data; as in the ns-3 code
        /// of ABM.
        FirstBdp = "first_bdp",
        /// For RDMA, the packets whose first byte is among the 54,000 behind the first; for other data,
        /// the data that a sender sends before it has sent 100,000 bytes; no packet without data. As in
        /// the ns-3 code of Reverie (NSDI 2024).
        Reverie = "reverie",
    }
}

named! {
    /// Time at which an RDMA flow ends.
    FlowEnd {
        /// When its last acknowledgement reaches the sender, as in the ns-3 code of HPCC.
        LastAck = "last_ack",
        /// When its last byte reaches the receiver, as with TCP.
        Receiver = "receiver",
    }
}

named! {
    /// Treatment of RDMA acknowledgements at switches.
    AckClass {
        /// Like the data of their flow.
        Data = "data",
        /// Like pause frames.
        Control = "control",
    }
}

named! {
    /// Loss recovery with SACK.
    Recovery {
        /// RFC 6675 with the proportional rate reduction of RFC 6937.
        Rfc = "rfc",
        /// As in TcpSocketBase of ns-3 3.37, with its timestamps in milliseconds, for comparing the
        /// simulators.
        Ns3 = "ns3",
        /// RACK-TLP (RFC 8985), as Linux has it.
        Rack = "rack",
    }
}

named! {
    /// Way in which the flows of one host share its network interface.
    HostQueue {
        /// One packet per flow in turn, as Linux `fq` does.
        Fair = "fair",
        /// One queue for all flows of the host.
        Fifo = "fifo",
    }
}

named! {
    /// Order in which a port serves its queues.
    Scheduler {
        /// One packet of every queue in turn.
        Rr = "rr",
        /// A number of bytes of every queue in turn: deficit round robin (Shreedhar and Varghese,
        /// SIGCOMM 1995) with a quantum of `queue_weights` full packets.
        Drr = "drr",
        /// The queue of the lowest number that is not empty.
        Strict = "strict",
        /// The first `strict_queues` queues strictly, then the others by deficit round robin.
        StrictDrr = "strict+drr",
    }
}

named! {
    /// Queue lengths at which a switch marks data.
    Marking {
        /// All data at or above a length (DCTCP, SIGCOMM 2010, §3.1).
        Step = "step",
        /// With a probability that rises with the length, as in random early detection.
        Red = "red",
        /// Like `red`, by the queue length that a packet leaves behind when its port begins to send it.
        /// Lengths scale with the rate of the port relative to the rate of hosts (HPCC, SIGCOMM 2019).
        RedAtDequeue = "red_at_dequeue",
    }
}

named! {
    /// The form of the rules for a buffer with lossless packets.
    LosslessRules {
        /// Reverie (NSDI 2024).
        Paper = "paper",
        /// The ns-3 code that Reverie was evaluated with.
        Ns3 = "ns3",
    }
}

named! {
    /// Queues that count as congested in Reverie's n_p.
    Congested {
        /// Each queue in part, by its filtered length in units of 20,480 B, as in the ns-3 code.
        Sum = "sum",
        /// Queues whose filtered length is at least 0.9 of the last threshold (ABM, SIGCOMM 2022).
        Abm = "abm",
    }
}

named! {
    /// Duration of a pause (IEEE 802.1Qbb).
    PfcMode {
        /// Until it is revoked.
        XonXoff = "xonxoff",
        /// For a limited time; the frame is repeated before that ends.
        Quanta = "quanta",
    }
}

named! {
    /// Action on a queue that has been paused for too long.
    Watchdog {
        /// The run stops and reports which queues wait for which.
        Stop = "stop",
        /// The packets of the queue are lost.
        Drop = "drop",
    }
}

named! {
    /// Transports whose data a switch may mark.
    EcnCapable {
        /// All transports that answer marks.
        All = "all",
        /// DCTCP only. Hosts with other transports do not use ECN, as in the published runs of ABM
        /// (SIGCOMM 2022).
        Dctcp = "dctcp",
    }
}

named! {
    /// Kinds of flows in a trace.
    Traffic {
        /// Flows of a workload towards every active port, as `arrivals` says (NDT §VI-A).
        Poisson = "poisson",
        /// Queries to one port, which many hosts answer at once, while other ports receive
        /// elephants (NDT §VI-B, Fig. 8(d)).
        IncastElephants = "incast_elephants",
        /// Elephants to a few ports from hosts that also send them bursts together (NDT §VI-D,
        /// Fig. 10).
        BurstsOverElephants = "bursts_over_elephants",
    }
}

named! {
    /// Distribution in time of the flows to one port (NDT §VI-A).
    Arrivals {
        /// Each trace is `spread` or `synchronised` with probability 1/2.
        Mixed = "mixed",
        /// A Poisson process per port, each flow from one of the port's sources at random.
        Spread = "spread",
        /// Groups with one flow from each source of the port, all starting at one instant; the
        /// groups are a Poisson process.
        Synchronised = "synchronised",
    }
}

named! {
    /// A published flow-size distribution, compiled in.
    Workload {
        /// Web search (DCTCP, SIGCOMM 2010); mean 1,711,250 B.
        WebSearch = "web_search",
        /// Data mining (VL2, SIGCOMM 2009); mean 12,658,199 B.
        DataMining = "data_mining",
        /// Facebook Hadoop, as HPCC (SIGCOMM 2019) uses it; mean 120,421 B.
        FbHadoop = "fb_hadoop",
        /// Alibaba storage 2019, as HPCC uses it.
        AliStorage = "ali_storage",
        /// Web search with the sizes below 10,000 B used in the published runs of ABM (SIGCOMM 2022)
        /// and Credence (NSDI 2024); mean 1,711,222 B.
        WebSearchAbm = "web_search_abm",
    }
}
