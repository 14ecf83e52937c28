//! The scenario settings that are a choice among names.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A text that is not the name of a value of a setting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not one of {}{}", crate::input::excerpt(.given), .known.join(", "), crate::input::suggestion(.given, .known))]
pub struct UnknownName {
    /// What was given.
    pub given: String,
    /// What would have been right.
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

named! {
    /// Which switches there are.
    TopologyKind {
        /// One switch with a host on every port.
        Single = "single",
        /// Leaf switches with hosts, each connected to every spine switch.
        LeafSpine = "leafspine",
    }
}

named! {
    /// How large the buffer of a spine switch is, where `buffer_bytes_per_port_gbps` counts.
    SpineBuffer {
        /// In proportion to its own ports.
        Own = "own",
        /// As large as that of a leaf switch.
        Leaf = "leaf",
    }
}

named! {
    /// Which buffer the ports of a spine switch draw on.
    SpinePool {
        /// That of the spine.
        Own = "own",
        /// That of the leaf which a port leads to, as in the published code of ABM (SIGCOMM 2022).
        WithLeaf = "with_leaf",
    }
}

named! {
    /// What decides which of several equal paths a packet takes.
    Ecmp {
        /// A hash of hosts, flow and direction (RFC 2992).
        Hash = "hash",
        /// The number of the destination, modulo the number of links; as ns-3's static routes.
        DstMod = "dst_mod",
        /// The number of the flow in the order of starts, modulo the number of links.
        FlowMod = "flow_mod",
        /// Packets take the links in turn, so that those of a flow overtake each other.
        Spray = "spray",
    }
}

named! {
    /// What makes the hash of flows differ from switch to switch.
    EcmpSalt {
        /// The number of the switch, so that choices at different switches are independent.
        Switch = "switch",
        /// Nothing: all switches cut the same hash. Where a leaf has several links to a spine, the choice of
        /// the spine then decides which of them are used on the way down, and the others stay idle.
        None = "none",
    }
}

named! {
    /// Which queues generated flows use.
    FlowPriority {
        /// All queues in turn.
        InTurn = "in_turn",
        /// Queue `background_priority`.
        Fixed = "fixed",
        /// Each a random one of those from 1 on.
        RandomPerFlow = "random_per_flow",
        /// Those of the hosts of a leaf a random one of those from 1 on.
        RandomPerLeaf = "random_per_leaf",
    }
}

named! {
    /// Who sends to whom.
    Demand {
        /// Active ports receive flows, as `traffic` says.
        Ports = "ports",
        /// The hosts of a leaf send to those of the next leaf, so that all traffic crosses spines.
        Ring = "ring",
        /// Hosts send to those of all other leaves.
        OtherLeaf = "other_leaf",
        /// Hosts send to all others.
        Uniform = "uniform",
    }
}

named! {
    /// What the completion time of a flow is divided by in its slowdown.
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
    /// Congestion control of every sender.
    TransportKind {
        /// NewReno; with SACK the recovery is that of RFC 6675 and RFC 6937.
        NewReno = "newreno",
        /// CUBIC (RFC 9438).
        Cubic = "cubic",
        /// CUBIC as in TcpCubic of ns-3 3.37, for comparing the simulators.
        CubicNs3 = "cubic-ns3",
        /// DCTCP (RFC 8257); the switch marks packets.
        Dctcp = "dctcp",
        /// CUBIC with RACK-TLP, delayed and quick acknowledgements and HyStart, as Linux has them.
        Linux = "linux",
        /// DCTCP with what `linux` has.
        LinuxDctcp = "linux-dctcp",
        /// PowerTCP (NSDI 2022), from telemetry.
        PowerTcp = "powertcp",
        /// θ-PowerTCP (NSDI 2022), from round-trip times.
        ThetaPowerTcp = "theta-powertcp",
        /// TIMELY (SIGCOMM 2015), from round-trip times.
        Timely = "timely",
        /// HPCC (SIGCOMM 2019), from telemetry.
        Hpcc = "hpcc",
        /// RDMA with DCQCN (SIGCOMM 2015), from marks.
        Dcqcn = "dcqcn",
        /// RDMA with DCQCN as Reverie (NSDI 2024) was evaluated with.
        DcqcnReverie = "dcqcn:preset=reverie",
        /// RDMA with PowerTCP (NSDI 2022), from telemetry, as Reverie was evaluated with.
        PowerTcpRdma = "powertcp-rdma",
    }
}

named! {
    /// Which form of a transport with a rate.
    TransportVariant {
        /// That of its paper.
        Paper = "paper",
        /// That of the ns-3 code with which ABM (SIGCOMM 2022) and Credence (NSDI 2024) were
        /// evaluated.
        Ns3 = "ns3",
    }
}

named! {
    /// How CUBIC leaves slow start before a loss.
    HyStartRule {
        /// HyStart++: five rounds of a quarter of the growth once delay has grown from round to round
        /// (RFC 9406).
        Rfc9406 = "rfc9406",
        /// HyStart of Linux: at once, by the length of a train of acknowledgements or by growing delay.
        Linux = "linux",
    }
}

named! {
    /// Where Linux does otherwise than the RFCs.
    TcpRules {
        /// As the RFCs.
        Rfc = "rfc",
        /// As Linux: a loss reduces the window and not what is outstanding, a recovery slows down while
        /// losses go on, the timer starts anew with a retransmission of the first segment, and CUBIC
        /// grows by rules of its own.
        Linux = "linux",
    }
}

named! {
    /// Which packets are unscheduled: sent before the network can have said anything.
    Unscheduled {
        /// Data that is sent before the flow's first acknowledgement of data arrives (ABM, SIGCOMM
        /// 2022, §3.3).
        FirstRtt = "first_rtt",
        /// Data of a sender that has sent fewer bytes than the line of a host carries in a base
        /// round trip, retransmissions among them, and all packets without data; as in the ns-3 code
        /// of ABM.
        FirstBdp = "first_bdp",
        /// Of RDMA, the packets whose first byte is among the 54,000 behind the first; of other data,
        /// what a sender sends before it has sent 100,000 bytes; no packet without data. As in the
        /// ns-3 code of Reverie (NSDI 2024).
        Reverie = "reverie",
    }
}

named! {
    /// When an RDMA flow ends.
    FlowEnd {
        /// When its last acknowledgement reaches the sender, as in the ns-3 code of HPCC.
        LastAck = "last_ack",
        /// When its last byte reaches the receiver, as with TCP.
        Receiver = "receiver",
    }
}

named! {
    /// How switches treat acknowledgements of RDMA.
    AckClass {
        /// As the data of their flow.
        Data = "data",
        /// As pause frames.
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
    /// How the flows of one host share its network interface.
    HostQueue {
        /// One packet per flow in turn, as Linux `fq` does.
        Fair = "fair",
        /// One queue for all flows of the host.
        Fifo = "fifo",
    }
}

named! {
    /// Which of its queues a port serves next.
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
    /// At which queue lengths a switch marks data.
    Marking {
        /// From a length on (DCTCP, SIGCOMM 2010, §3.1).
        Step = "step",
        /// With a probability that rises with the length, as random early detection has it.
        Red = "red",
        /// As `red`, by the length that a packet leaves behind when its port begins to send it, with
        /// lengths in proportion to the rate of the port over that of hosts (HPCC, SIGCOMM 2019).
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
    /// Which queues count as congested in Reverie's n_p.
    Congested {
        /// Each in part, by its filtered length in units of 20,480 B, as in the ns-3 code.
        Sum = "sum",
        /// Those whose filtered length is at least 0.9 of the last threshold (ABM, SIGCOMM 2022).
        Abm = "abm",
    }
}

named! {
    /// How long a pause frame pauses (IEEE 802.1Qbb).
    PfcMode {
        /// Until it is taken back.
        XonXoff = "xonxoff",
        /// For a time, and it is repeated before that ends.
        Quanta = "quanta",
    }
}

named! {
    /// What becomes of a queue that has been paused for too long.
    Watchdog {
        /// The run stops and says which queues wait for which.
        Stop = "stop",
        /// Its packets are lost.
        Drop = "drop",
    }
}

named! {
    /// Whose data a switch may mark.
    EcnCapable {
        /// That of all transports that answer marks.
        All = "all",
        /// That of DCTCP. Hosts with other transports do not use ECN, as in the published runs of ABM
        /// (SIGCOMM 2022).
        Dctcp = "dctcp",
    }
}

named! {
    /// Which flows a trace is made of.
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
    /// How the flows towards one port are spread in time (NDT §VI-A).
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
        /// Web search with the sizes below 10,000 B that the published runs of ABM (SIGCOMM 2022) and
        /// Credence (NSDI 2024) have; mean 1,711,222 B.
        WebSearchAbm = "web_search_abm",
    }
}
