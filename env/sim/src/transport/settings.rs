//! Settings that all flows of a simulation share.

use super::rtt;
use crate::scenario::{
    EcnCapable, HyStartRule, LosslessRules, MAX_WINDOW, Recovery, Scenario, TcpRules,
    TransportKind, TransportVariant, Unscheduled,
};
use crate::units::{Duration, Rate};

/// Transport settings that all flows of a simulation share.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Maximum segment size, payload bytes.
    pub mss: u32,
    /// Initial window, segments (RFC 6928).
    pub initial_window: u32,
    /// Largest congestion window, bytes.
    pub window_cap: u32,
    /// Minimum retransmission timeout.
    pub min_rto: Duration,
    /// Minimum of the variation term in the retransmission timeout: the clock's granularity (RFC 6298
    /// §2), or `min_rto` as in Linux.
    pub least_variation: Duration,
    /// Time added to the timers of RACK-TLP, which are coarser than round trips.
    pub timer_slack: Duration,
    /// Round-trip time assumed before the first measurement.
    pub initial_rtt: Duration,
    /// Retransmission timeout of data if the SYN was sent again and nothing was measured (RFC 6298
    /// §5.7).
    pub fallback_rto: Duration,
    /// Number of SYN retransmissions from which the initial window is one segment.
    pub syn_retransmissions: u8,
    /// True if packets carry timestamps, which tell a SYN from the one before it.
    pub timestamps: bool,
    /// Congestion control.
    pub transport: TransportKind,
    /// Variant of the congestion controls that set a rate.
    pub variant: TransportVariant,
    /// Congestion control of flows that belong to a query (incast).
    pub incast_transport: TransportKind,
    /// Congestion control of flows of the second class.
    pub second_transport: TransportKind,
    /// Rate of a host's line.
    pub line_rate: Rate,
    /// Round-trip time through the empty network, which hosts know from the scenario.
    pub base_rtt: Duration,
    /// Bytes on the wire on top of the payload.
    pub header_bytes: u32,
    /// Number of flows that share a host's line, as the additive increase of a rate assumes.
    pub flows_per_host: u32,
    /// True if windows double up to the slow-start threshold.
    pub slow_start: bool,
    /// Rule by which CUBIC leaves slow start when delay grows, if it does.
    pub hystart: Option<HyStartRule>,
    /// Maximum number of segments that an acknowledgement adds to a window in slow start (RFC 3465 §2.2, L).
    pub slow_start_limit: u32,
    /// True if acknowledgements carry SACK blocks; without them, loss recovery follows RFC 6582.
    pub sack: bool,
    /// Loss recovery.
    pub recovery: Recovery,
    /// True if windows and the retransmission timer follow Linux where it differs from RFCs.
    pub linux_rules: bool,
    /// Number of in-order segments that one acknowledgement covers.
    pub delayed_ack: u32,
    /// Number of segments that a receiver acknowledges at once at the start of a flow, and after a segment
    /// that arrived out of order.
    pub quick_acks: u32,
    /// Maximum delay of an acknowledgement.
    pub ack_delay: Duration,
    /// True if switches may mark only the data of DCTCP.
    pub marks_dctcp_only: bool,
    /// Payload bytes after which the packets of a sender are scheduled; `None` if they are scheduled from the
    /// first acknowledgement of data.
    pub unscheduled_bytes: Option<u32>,
    /// The same for RDMA: maximum number of bytes of the flow before a packet that is unscheduled.
    pub unscheduled_offset: Option<u32>,
    /// True if any congestion control sets a rate. A sender then asks its [`Pacer`](super::Pacer), if it has one,
    /// whether the next segment may leave.
    pub paced: bool,
    /// True if some flows use RDMA.
    pub rdma: bool,
    /// Maximum time that an RDMA sender waits for an acknowledgement.
    pub rdma_rto: Duration,
    /// True if an RDMA receiver acknowledges packets that it has already.
    pub answers_duplicates: bool,
}

/// Maximum delay of an acknowledgement: Linux's minimum (`TCP_DELACK_MIN`), well below the half
/// second that RFC 5681 §4.2 allows.
const ACK_DELAY: Duration = Duration::from_ms(40);

/// Payload bytes of a TCP flow that are unscheduled in the ns-3 code of Reverie.
const UNSCHEDULED_BYTES: u32 = 100_000;

/// Byte of an RDMA flow up to which packets are unscheduled in the ns-3 code of Reverie.
const UNSCHEDULED_OFFSET: u32 = 54_000;

/// Retransmission timeout after a SYN that was sent again (RFC 6298 §5.7), and its ratio to the first timeout
/// of a SYN (§2.1). The ratio also applies if the first timeout is shorter than the RFC's.
const FALLBACK_RTO: Duration = Duration::from_ms(3_000);
pub(super) const FALLBACK_FACTOR: u64 = 3;

/// Returns the largest initial window of RFC 5681 (§3.1), segments.
fn rfc_5681_window(mss: u32) -> u32 {
    match mss {
        0..=1_095 => 4,
        1_096..=2_190 => 3,
        2_191.. => 2,
    }
}

/// Two ticks of a clock of 1 kHz, which Linux adds to its timers (`TCP_TIMEOUT_MIN`).
const TIMER_SLACK: Duration = Duration::from_ms(2);

impl Settings {
    /// Returns the settings of a valid scenario.
    pub(crate) fn from_scenario(scenario: &Scenario) -> Settings {
        let cap = match scenario.tcp.max_cwnd_bytes {
            0 => MAX_WINDOW,
            bytes => u32::try_from(bytes).map_or(MAX_WINDOW, |bytes| bytes.min(MAX_WINDOW)),
        };
        let min_rto = Duration::from_us(scenario.tcp.min_rto_us);
        let stack = scenario.stack();
        let [transport, incast_transport, second_transport] = scenario.transports();
        let linux_rules =
            stack.recovery == Recovery::Rack && scenario.tcp.tcp_rules == TcpRules::Linux;
        Settings {
            mss: scenario.packets.mss,
            initial_window: scenario.tcp.init_cwnd,
            window_cap: cap,
            min_rto,
            least_variation: match stack.recovery {
                Recovery::Rack => min_rto,
                _ => rtt::GRANULARITY,
            },
            // Proportional to minRTO, 2 of 200 ms, if that is less than Linux's.
            timer_slack: TIMER_SLACK.min(min_rto / 100),
            initial_rtt: Duration::from_us(scenario.tcp.initial_rtt_us),
            fallback_rto: FALLBACK_RTO.min(scenario.syn_timeout().saturating_mul(FALLBACK_FACTOR)),
            // RFC 6928, whose window is larger, requires more than one (§2), as Linux does.
            syn_retransmissions: match scenario.tcp.init_cwnd
                <= rfc_5681_window(scenario.packets.mss)
            {
                true if !linux_rules => 1,
                _ => 2,
            },
            timestamps: scenario.tcp.timestamps,
            transport,
            variant: scenario.transport.variant,
            incast_transport,
            second_transport,
            line_rate: scenario.rate(),
            base_rtt: scenario.base_rtt(),
            header_bytes: scenario.packets.header_bytes + scenario.timestamp_bytes(),
            flows_per_host: scenario.transport.flows_per_host,
            slow_start: scenario.tcp.slow_start,
            hystart: stack.hystart.then_some(scenario.tcp.hystart_rule),
            slow_start_limit: scenario.tcp.slow_start_limit,
            sack: scenario.tcp.sack,
            recovery: stack.recovery,
            linux_rules,
            delayed_ack: stack.delayed_ack,
            quick_acks: stack.quick_acks,
            // With a delay as long as the timeout, every lone segment would time out.
            ack_delay: ACK_DELAY.min(min_rto / 2),
            marks_dctcp_only: scenario.marking.capable == EcnCapable::Dctcp,
            unscheduled_bytes: match scenario.tcp.unscheduled {
                Unscheduled::FirstRtt => None,
                Unscheduled::FirstBdp => Some(scenario.bdp_bytes()),
                Unscheduled::Reverie => Some(UNSCHEDULED_BYTES),
            },
            unscheduled_offset: match scenario.tcp.unscheduled {
                Unscheduled::Reverie => Some(UNSCHEDULED_OFFSET),
                _ => None,
            },
            paced: scenario
                .transports()
                .iter()
                .any(|kind| kind.sets_rate() || kind.is_rdma()),
            rdma: scenario.has_rdma(),
            rdma_rto: Duration::from_us(scenario.rdma.rto_us),
            answers_duplicates: scenario.lossless.rules == LosslessRules::Paper,
        }
    }

    /// Returns the settings of flows that belong to a query (incast).
    pub(crate) fn of_incast(&self) -> Settings {
        Settings {
            transport: self.incast_transport,
            ..*self
        }
    }

    /// Returns the settings of flows of the second class.
    pub(crate) fn of_second(&self) -> Settings {
        Settings {
            transport: self.second_transport,
            ..*self
        }
    }

    /// Returns true if hosts behave like those of ns-3.
    #[inline]
    pub(crate) fn is_ns3(&self) -> bool {
        self.recovery == Recovery::Ns3
    }

    /// Returns true if loss recovery is RACK-TLP.
    #[inline]
    pub(crate) fn is_rack(&self) -> bool {
        self.recovery == Recovery::Rack
    }
}
