//! The transports, each with the properties that settings, switches and hosts depend on.

use super::named::named;

/// What a transport's sender controls, and how it repairs losses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Sends {
    /// TCP with a window, which losses and marks reduce.
    Window,
    /// TCP at a rate within a window. It answers neither losses nor marks.
    Rate,
    /// RDMA: packets leave at a rate, and losses are repaired with go-back-N.
    Rdma,
}

/// Properties of a transport.
#[derive(Clone, Copy, Debug)]
struct Properties {
    sends: Sends,
    telemetry: bool,
    marks: bool,
    dctcp: bool,
    linux: bool,
    ns3: bool,
}

impl Properties {
    const fn of(sends: Sends) -> Properties {
        Properties {
            sends,
            telemetry: false,
            marks: matches!(sends, Sends::Window),
            dctcp: false,
            linux: false,
            ns3: false,
        }
    }

    const fn telemetry(self) -> Properties {
        Properties {
            telemetry: true,
            ..self
        }
    }

    const fn marks(self) -> Properties {
        Properties {
            marks: true,
            ..self
        }
    }

    const fn dctcp(self) -> Properties {
        Properties {
            dctcp: true,
            ..self
        }
    }

    const fn linux(self) -> Properties {
        Properties {
            linux: true,
            ..self
        }
    }

    const fn ns3(self) -> Properties {
        Properties { ns3: true, ..self }
    }
}

/// Calls a macro with the table of transports: documentation, name in the code and name in files, properties, and
/// the type of the congestion control in the module `transport`.
macro_rules! transports {
    ($then:ident) => {
        $then! {
            /// NewReno; with SACK the recovery is that of RFC 6675 and RFC 6937.
            NewReno = "newreno", Properties::of(Sends::Window), NewReno;
            /// CUBIC (RFC 9438).
            Cubic = "cubic", Properties::of(Sends::Window), Cubic;
            /// CUBIC as in TcpCubic of ns-3 3.37, for comparing the simulators.
            CubicNs3 = "cubic-ns3", Properties::of(Sends::Window).ns3(), CubicNs3;
            /// DCTCP (RFC 8257); the switch marks packets.
            Dctcp = "dctcp", Properties::of(Sends::Window).dctcp(), Dctcp;
            /// CUBIC with RACK-TLP, delayed and quick acknowledgements and HyStart, as Linux has them.
            Linux = "linux", Properties::of(Sends::Window).linux(), Cubic;
            /// DCTCP with the same additions as `linux`.
            LinuxDctcp = "linux-dctcp", Properties::of(Sends::Window).dctcp().linux(), Dctcp;
            /// PowerTCP (NSDI 2022), from telemetry.
            PowerTcp = "powertcp", Properties::of(Sends::Rate).telemetry(), PowerTcp;
            /// θ-PowerTCP (NSDI 2022), from round-trip times.
            ThetaPowerTcp = "theta-powertcp", Properties::of(Sends::Rate), ThetaPowerTcp;
            /// TIMELY (SIGCOMM 2015), from round-trip times.
            Timely = "timely", Properties::of(Sends::Rate), Timely;
            /// HPCC (SIGCOMM 2019), from telemetry.
            Hpcc = "hpcc", Properties::of(Sends::Rate).telemetry(), Hpcc;
            /// RDMA with DCQCN (SIGCOMM 2015), from marks.
            Dcqcn = "dcqcn", Properties::of(Sends::Rdma).marks(), Dcqcn;
            /// RDMA with the DCQCN that Reverie (NSDI 2024) was evaluated with.
            DcqcnReverie = "dcqcn:preset=reverie", Properties::of(Sends::Rdma).marks(), DcqcnReverie;
            /// RDMA with PowerTCP (NSDI 2022), from telemetry, as Reverie was evaluated with.
            PowerTcpRdma = "powertcp-rdma", Properties::of(Sends::Rdma).telemetry(), PowerTcpRdma;
        }
    };
}
pub(crate) use transports;

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $name:literal, $properties:expr, $control:ident;)+) => {
        named! {
            /// Transport of a sender: congestion control, and what comes with it.
            TransportKind { $($(#[$doc])* $kind = $name,)+ }
        }

        impl TransportKind {
            const fn properties(self) -> Properties {
                match self {
                    $(TransportKind::$kind => $properties,)+
                }
            }
        }
    };
}
transports!(kinds);

macro_rules! names {
    (
        $(#[$_doc:meta])* $_kind:ident = $first:literal, $_properties:expr, $_control:ident;
        $($(#[$doc:meta])* $kind:ident = $name:literal, $properties:expr, $control:ident;)+
    ) => {
        /// Expands to the names of all transports, for the description of the setting.
        macro_rules! transport_names {
            () => {
                concat!($first, $(" | ", $name),+)
            };
        }
        pub(super) use transport_names;
    };
}
transports!(names);

impl TransportKind {
    /// Returns true if the transport stands for the combination of an operating system.
    pub fn is_combination(self) -> bool {
        self.properties().linux
    }

    /// Returns true if the congestion control is DCTCP, which needs a switch that marks.
    pub fn is_dctcp(self) -> bool {
        self.properties().dctcp
    }

    /// Returns true if the transport is RDMA: packets leave at a rate, losses are repaired with
    /// go-back-N.
    pub fn is_rdma(self) -> bool {
        self.properties().sends == Sends::Rdma
    }

    /// Returns true if the congestion control of a transport other than RDMA sets a rate, at which
    /// packets leave. It answers neither losses nor marks.
    pub fn sets_rate(self) -> bool {
        self.properties().sends == Sends::Rate
    }

    /// Returns true if the congestion control reads telemetry of the switches.
    pub fn reads_telemetry(self) -> bool {
        self.properties().telemetry
    }

    /// Returns true if marks slow its senders down.
    pub(super) fn answers_marks(self) -> bool {
        self.properties().marks
    }

    /// Returns true if it needs the loss recovery of ns-3.
    pub(super) fn needs_ns3(self) -> bool {
        self.properties().ns3
    }
}
