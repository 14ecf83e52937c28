//! Both ends of a TCP connection: loss recovery, acknowledgements, windows and timers.

use super::named::named;
use super::settings::settings;
use super::validate::{Checks, MAX_US};
use super::{MAX_WINDOW, Scenario, ScenarioError};
use crate::units::Duration;

settings! {
    /// Both ends of a TCP connection.
    pub struct TcpSettings {
        /// The rule is the one that `hystart_rule` names.
        hystart: bool = false, "cubic leaves slow start when delay grows";
        /// HyStart++ is RFC 9406. Applies where the transport has HyStart.
        hystart_rule: HyStartRule = HyStartRule::Rfc9406, "hystart: rfc9406 (HyStart++) | linux";
        sack: bool = true, "selective acknowledgements";
        sack_block_bytes: u32 = 0, "bytes of an ACK per SACK block, on top of ack_bytes";
        /// Applies where `sack` is true.
        recovery: Recovery = Recovery::Rfc, "loss recovery: rfc | ns3 | rack";
        /// Concerns the retransmission timer, and how windows shrink and grow. Applies where `recovery`
        /// is `rack`.
        tcp_rules: TcpRules = TcpRules::Rfc, "rack: rules where Linux differs from RFCs: rfc | linux";
        delayed_ack: u32 = 1, "in-order segments that one ACK covers; 1: an ACK each";
        /// Applies if `delayed_ack` is above 1: at the start of a flow, and after a segment out of
        /// order.
        quick_acks: u32 = 0, "segments acknowledged at once before ACKs are delayed";
        /// Every data packet, ACK and SYN has timestamps.
        timestamps: bool = false, "TCP timestamps, 12 bytes more per packet";
        init_cwnd: u32 = 10, "initial window, segments";
        /// Without it the window grows as in congestion avoidance from the first segment on, after a
        /// timeout too.
        slow_start: bool = true, "windows double per round trip up to a threshold";
        /// With delayed acknowledgements a limit of 1 lets a window grow by half per round trip. Linux
        /// has no limit.
        slow_start_limit: u32 = 1, "segments that an ACK may add to a window in slow start (L of RFC 3465)";
        /// No window exceeds 2 GiB.
        max_cwnd_bytes: u64 = 0, "largest congestion window, bytes; 0: not capped";
        /// Some policies spare such packets.
        unscheduled: Unscheduled = Unscheduled::FirstRtt, "packets that count as unscheduled: first_rtt | first_bdp | reverie";
        min_rto_us: u64 = 200_000, "smallest retransmission timeout, us";
        initial_rtt_us: u64 = 200, "round-trip time assumed before the first sample, us";
        handshake: bool = false, "flows start with SYN and SYN-ACK";
        /// `None`, written `"min_rto"`, means `min_rto_us`.
        syn_timeout_us: Option<u64> = None, "first timeout of a SYN, us, or min_rto";
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

impl Scenario {
    /// Returns the first timeout of a SYN.
    pub fn syn_timeout(&self) -> Duration {
        Duration::from_us(self.tcp.syn_timeout_us.unwrap_or(self.tcp.min_rto_us))
    }

    /// Bytes that timestamps add to a packet: 12 (RFC 7323 §3.2, padded) or 0.
    pub fn timestamp_bytes(&self) -> u32 {
        if self.tcp.timestamps { 12 } else { 0 }
    }
}

impl TcpSettings {
    pub(super) fn validate(&self, check: &Checks<'_>) -> Result<(), ScenarioError> {
        if !self.sack && self.recovery != Recovery::Rfc {
            let problem = format!(
                "{} is a recovery with SACK; must be rfc where sack is false",
                self.recovery
            );
            return check.invalid("recovery", self.recovery, problem);
        }
        let window = u64::from(MAX_WINDOW);
        let syn_timeout_us = self.syn_timeout_us.unwrap_or(self.min_rto_us);
        for (field, value, min, max) in [
            ("sack_block_bytes", self.sack_block_bytes.into(), 0, 1_000),
            ("delayed_ack", self.delayed_ack.into(), 1, 1_000),
            ("quick_acks", self.quick_acks.into(), 0, 255),
            ("slow_start_limit", self.slow_start_limit.into(), 1, 65_535),
            ("init_cwnd", self.init_cwnd.into(), 1, 10_000),
            ("max_cwnd_bytes", self.max_cwnd_bytes, 0, window),
            ("min_rto_us", self.min_rto_us, 1, MAX_US),
            ("initial_rtt_us", self.initial_rtt_us, 1, MAX_US),
            ("syn_timeout_us", syn_timeout_us, 1, MAX_US),
        ] {
            check.within(field, value, min, max)?;
        }
        if self.recovery != Recovery::Ns3 {
            return Ok(());
        }
        for (field, value) in [
            ("delayed_ack", self.delayed_ack),
            ("slow_start_limit", self.slow_start_limit),
        ] {
            if value > 1 {
                return check.invalid(field, value, "must be 1 where recovery is ns3");
            }
        }
        if !self.slow_start {
            return check.invalid("slow_start", false, "must be true where recovery is ns3");
        }
        Ok(())
    }
}
