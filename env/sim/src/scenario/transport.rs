//! The transports of flows, and what they imply besides congestion control.

use super::named::named;
use super::settings::settings;
use super::transports::transport_names;
use super::validate::Checks;
use super::{MAX_WINDOW, Recovery, Scenario, ScenarioError, TransportKind};
use crate::units::Duration;

/// Most full packets that a round trip through an empty network may carry. An isolated flow keeps them
/// all in memory.
const MAX_PACKETS_PER_ROUND_TRIP: u64 = 10_000_000;

settings! {
    /// Transports of the classes of flows, and settings of those with a rate.
    pub struct TransportSettings {
        kind as transport: TransportKind = TransportKind::NewReno, transport_names!();
        /// In-cast flows are those that start as a group. `None`, written `"same"`, means `transport`.
        incast as incast_transport: Option<TransportKind> = None, "transport of in-cast flows, or same";
        /// In a CSV file these flows have the kind `second`. `None`, written `"same"`, means
        /// `transport`.
        second as second_transport: Option<TransportKind> = None, "transport of flows of the second class, or same";
        variant as transport_variant: TransportVariant = TransportVariant::Paper, "powertcp, theta-powertcp, timely, hpcc: paper | ns3";
        flows_per_host: u32 = 10, "powertcp, theta-powertcp, hpcc: flows that share the line of a host, as they assume";
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

/// Segments that Linux acknowledges at once at the start of a connection (`TCP_MAX_QUICKACKS`).
const QUICK_ACKS: u32 = 16;

/// Settings of the ends of a flow that some transports imply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Stack {
    pub(crate) recovery: Recovery,
    pub(crate) delayed_ack: u32,
    pub(crate) quick_acks: u32,
    pub(crate) hystart: bool,
}

impl Scenario {
    /// Returns the transports of other flows, of in-cast flows and of those of the second class.
    pub(crate) fn transports(&self) -> [TransportKind; 3] {
        let or_same = |kind: Option<TransportKind>| kind.unwrap_or(self.transport.kind);
        [
            self.transport.kind,
            or_same(self.transport.incast),
            or_same(self.transport.second),
        ]
    }

    /// Returns the settings of the ends of flows. `linux` and `linux-dctcp` have RACK-TLP,
    /// acknowledgements of two segments, 16 quick ones and HyStart, wherever the setting has its
    /// default.
    pub(crate) fn stack(&self) -> Stack {
        let given = Stack {
            recovery: self.tcp.recovery,
            delayed_ack: self.tcp.delayed_ack,
            quick_acks: self.tcp.quick_acks,
            hystart: self.tcp.hystart,
        };
        if !self.transport.kind.is_combination() {
            return given;
        }
        Stack {
            recovery: Recovery::Rack,
            delayed_ack: if given.delayed_ack == 1 {
                2
            } else {
                given.delayed_ack
            },
            quick_acks: if given.quick_acks == 0 {
                QUICK_ACKS
            } else {
                given.quick_acks
            },
            hystart: true,
        }
    }

    pub(super) fn validate_transport(&self, check: &Checks<'_>) -> Result<(), ScenarioError> {
        self.validate_combination(check)?;
        self.validate_rates(check)?;
        self.tcp.validate(check)?;
        if self.tcp.quick_acks > 0 && self.stack().delayed_ack == 1 {
            let problem = "must be 0 where delayed_ack is 1: every segment is acknowledged at once";
            return check.invalid("quick_acks", self.tcp.quick_acks, problem);
        }
        let (window, mss) = (self.tcp.max_cwnd_bytes, self.packets.mss);
        if window != 0 && window < u64::from(mss) {
            let problem =
                format!("smaller than one segment; must be 0 (not capped) or at least {mss}");
            return check.invalid("max_cwnd_bytes", window, problem);
        }
        self.validate_round_trip(check)
    }

    /// Checks the transports that stand for an operating system and imply its loss recovery.
    fn validate_combination(&self, check: &Checks<'_>) -> Result<(), ScenarioError> {
        if !self.transport.kind.is_combination() {
            return Ok(());
        }
        if !self.tcp.sack {
            let problem = format!("transport {} needs SACK; must be true", self.transport.kind);
            return check.invalid("sack", self.tcp.sack, problem);
        }
        if self.tcp.recovery == Recovery::Ns3 {
            let problem = format!(
                "transport {} has recovery rack; must be rack, or left at rfc",
                self.transport.kind
            );
            return check.invalid("recovery", self.tcp.recovery, problem);
        }
        Ok(())
    }

    /// Checks transports with a rate, including those of in-cast flows and of the second class.
    fn validate_rates(&self, check: &Checks<'_>) -> Result<(), ScenarioError> {
        check.within(
            "flows_per_host",
            u64::from(self.transport.flows_per_host),
            1,
            1_000_000,
        )?;
        for (field, kind) in [
            ("transport", Some(self.transport.kind)),
            ("incast_transport", self.transport.incast),
            ("second_transport", self.transport.second),
        ] {
            let Some(kind) = kind else { continue };
            let combined = kind.is_combination() || self.transport.kind.is_combination();
            if kind != self.transport.kind && combined {
                let problem =
                    "linux and linux-dctcp stand for both ends of all flows; must be same";
                return check.invalid(field, kind, problem);
            }
            if kind.needs_ns3() && self.tcp.recovery != Recovery::Ns3 {
                let problem = "cubic-ns3 belongs to recovery ns3; must be cubic otherwise";
                return check.invalid(field, kind, problem);
            }
        }
        for kind in self.transports() {
            self.validate_rate(check, kind)?;
        }
        Ok(())
    }

    /// Checks the needs of a transport with a rate at the ends and in the network.
    fn validate_rate(&self, check: &Checks<'_>, kind: TransportKind) -> Result<(), ScenarioError> {
        if kind.reads_telemetry() && !self.telemetry.enabled {
            let problem = format!("transport {kind} reads telemetry of the switches; must be true");
            return check.invalid("int", self.telemetry.enabled, problem);
        }
        if !kind.sets_rate() {
            return Ok(());
        }
        if self.tcp.recovery != Recovery::Rfc {
            let problem = format!("transport {kind} has no other recovery; must be rfc");
            return check.invalid("recovery", self.tcp.recovery, problem);
        }
        if !self.tcp.sack {
            let problem = format!("transport {kind} needs SACK; must be true");
            return check.invalid("sack", self.tcp.sack, problem);
        }
        if self.tcp.delayed_ack > 1 {
            let problem = format!("transport {kind} needs an acknowledgement each; must be 1");
            return check.invalid("delayed_ack", self.tcp.delayed_ack, problem);
        }
        // Windows and rates are converted into each other with the round-trip time.
        if self.base_rtt() == Duration::ZERO {
            let problem = format!("transport {kind} needs a round-trip time; must be above 0");
            return check.invalid("propagation_ns", self.network.propagation_ns, problem);
        }
        Ok(())
    }

    /// Checks the memory of an isolated flow: it has at most a round trip of packets in flight, or its
    /// largest window.
    fn validate_round_trip(&self, check: &Checks<'_>) -> Result<(), ScenarioError> {
        let full = self.full_packet_bytes() + u64::from(self.packets.overhead_bytes);
        let on_line = self.rtt_of_topology().0 / self.rate().transmission_time(full).0;
        let window = match self.tcp.max_cwnd_bytes {
            0 => u64::from(MAX_WINDOW),
            bytes => bytes,
        };
        let packets = on_line.min(window / u64::from(self.packets.mss));
        if packets > MAX_PACKETS_PER_ROUND_TRIP {
            return check.invalid(
                "propagation_ns",
                self.network.propagation_ns,
                format!(
                    "with rate_bps, mss and max_cwnd_bytes a round trip carries {packets} packets; \
                     must be at most {MAX_PACKETS_PER_ROUND_TRIP}"
                ),
            );
        }
        Ok(())
    }
}
