//! Explicit congestion notification: which packets are marked, and who answers.

use bufgym_util::convert::floor_u64;

use super::named::named;
use super::settings::settings;
use super::validate::Checks;
use super::{Scenario, ScenarioError, TransportKind};

settings! {
    /// Marks of explicit congestion notification.
    pub struct MarkingSettings {
        /// The settings of the other kinds of marking do not apply.
        kind as marking: Marking = Marking::Step, "queue lengths at which data is marked: step | red | red_at_dequeue";
        /// With `dctcp` and 0 the threshold is that of
        /// [`mark_threshold_bytes`](Scenario::mark_threshold_bytes).
        threshold_bytes as ecn_threshold_bytes: u64 = 0, "queue length at which data is marked; 0: off, dctcp's own";
        /// Replaces `ecn_threshold_bytes`; at most one of the two may be above 0.
        threshold_packets as ecn_k_packets: u32 = 0, "the same in packets of mss bytes; 0: ecn_threshold_bytes";
        red_kmin_bytes as ecn_red_kmin_bytes: u64 = 0, "marking red: queue length above which some data is marked, bytes";
        red_kmax_bytes as ecn_red_kmax_bytes: u64 = 0, "marking red: queue length from which all data is marked, bytes";
        /// Below `ecn_red_kmin_bytes` the probability is 0; in between it rises in proportion.
        red_pmax as ecn_red_pmax: f64 = 1.0, "marking red: probability of a mark just below ecn_red_kmax_bytes";
        /// 1 means the current length.
        red_weight as ecn_red_weight: f64 = 1.0, "marking red: weight of an arrival in the average length";
        /// Queue management that marks drops the packets of hosts without ECN (RFC 3168 §5).
        ecn: bool = false, "hosts use ECN; always so where the switch marks, and with dctcp";
        /// Other data is admitted where it would be marked.
        capable as ecn_capable: EcnCapable = EcnCapable::All, "flows whose data can be marked: all | dctcp";
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
    /// Transports whose data a switch may mark.
    EcnCapable {
        /// All transports that answer marks.
        All = "all",
        /// DCTCP only. Hosts with other transports do not use ECN, as in the published runs of ABM
        /// (SIGCOMM 2022).
        Dctcp = "dctcp",
    }
}

impl MarkingSettings {
    pub(super) fn validate(&self, check: &Checks<'_>) -> Result<(), ScenarioError> {
        let (bytes, packets) = (self.threshold_bytes, u64::from(self.threshold_packets));
        check.within("ecn_threshold_bytes", bytes, 0, 1_000_000_000_000)?;
        check.within("ecn_k_packets", packets, 0, 1_000_000_000)?;
        if packets > 0 && bytes > 0 {
            let problem = "must be 0 where ecn_threshold_bytes is above 0";
            return check.invalid("ecn_k_packets", packets, problem);
        }
        let (low, high) = (self.red_kmin_bytes, self.red_kmax_bytes);
        check.within("ecn_red_kmin_bytes", low, 0, 1_000_000_000_000)?;
        check.within("ecn_red_kmax_bytes", high, 0, 1_000_000_000_000)?;
        for (field, share) in [
            ("ecn_red_pmax", self.red_pmax),
            ("ecn_red_weight", self.red_weight),
        ] {
            // In this form the condition is false for NaN too.
            if !(share > 0.0 && share <= 1.0) {
                return check.invalid(field, share, "must be above 0 and at most 1");
            }
        }
        if self.kind != Marking::Step && high == 0 {
            let problem = "marking red needs it; must be above 0";
            return check.invalid("ecn_red_kmax_bytes", high, problem);
        }
        if low > high {
            let problem = format!("must be at most ecn_red_kmax_bytes, {high}");
            return check.invalid("ecn_red_kmin_bytes", low, problem);
        }
        Ok(())
    }
}

impl Scenario {
    /// Queue length at which the switch marks data, bytes; `None` without ECN.
    ///
    /// DCTCP without a setting has K of 20 full packets up to 1 Gbit/s and of 65 at 10 Gbit/s (DCTCP,
    /// SIGCOMM 2010, §3.4), in between and beyond in proportion.
    /// With `red` it is the smallest length with any marks; with `red_at_dequeue`, `None`.
    /// DCQCN answers marks, other transports with a rate do not; if no flow does, nothing is marked.
    pub fn mark_threshold_bytes(&self) -> Option<u64> {
        let answers = |kind: &TransportKind| match self.marking.capable {
            EcnCapable::Dctcp if !kind.is_rdma() => kind.is_dctcp(),
            _ => kind.answers_marks(),
        };
        if !self.transports().iter().any(answers) || self.marking.kind == Marking::RedAtDequeue {
            return None;
        }
        if self.marking.kind == Marking::Red {
            return Some(self.marking.red_kmin_bytes);
        }
        let given = match self.marking.threshold_packets {
            0 => self.marking.threshold_bytes,
            packets => u64::from(packets) * u64::from(self.packets.mss),
        };
        match given {
            0 if self.transports().iter().any(|kind| kind.is_dctcp()) => {
                let gbps = self.network.rate_bps as f64 / 1e9;
                let packets =
                    (20.0 + 5.0 * (gbps - 1.0)).clamp(20.0, 65.0) * (gbps / 10.0).max(1.0);
                Some(floor_u64(packets.round()) * self.full_packet_bytes())
            }
            0 => None,
            bytes => Some(bytes),
        }
    }

    /// Returns true if queue management may mark data instead of dropping it: both ends have agreed on
    /// ECN (RFC 3168 §6.1.1).
    pub fn uses_ecn(&self) -> bool {
        self.marking.ecn
            || self.marking.kind == Marking::RedAtDequeue
            || self.mark_threshold_bytes().is_some()
    }
}
