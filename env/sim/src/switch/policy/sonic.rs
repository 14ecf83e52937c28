//! Dynamic Threshold at ingress and egress, as the operating system SONiC configures it (Reverie, NSDI
//! 2024, §2.2), and the same with the factors of ABM (SIGCOMM 2022).

use super::{
    Bound, Definition, Deployment, Kind, PacketView, ParameterInfo, Policy, PolicyInfo, Scale,
    Search, SearchRange, Verdict, View,
};

pub(super) static DEFINITION: Definition = Definition {
    info: PolicyInfo {
        name: "sonic",
        summary: "Dynamic Threshold at ingress and egress, as in SONiC",
        rule: "lossless: pool iff in < alpha_i (b_I - P), else headroom and a pause; lossy: accept iff out < \
               alpha_e (b_ly - E_ly), and the pools have room",
        source: "Reverie, NSDI 2024, §2.2, Eq. 1 to 3",
        deployment: Deployment::Today,
        parameters: &[ALPHA_INGRESS, ALPHA_EGRESS],
    },
    build: |arguments, _| {
        Ok(LosslessPolicy(LosslessThresholds {
            sharing: Sharing::Sonic,
            alpha_ingress: arguments.value(ALPHA_INGRESS.name),
            alpha_egress: arguments.value(ALPHA_EGRESS.name),
        })
        .into())
    },
};

/// SONiC's Dynamic Threshold with the factors of ABM.
pub(super) static WITH_ABM: Definition = Definition {
    info: PolicyInfo {
        name: "sonic-abm",
        summary: "Active Buffer Management at ingress and egress, in the pools of SONiC",
        rule: "as sonic, with both thresholds times mu/b and over n_p of their side and priority",
        source: "Reverie, NSDI 2024, §4; Addanki et al., SIGCOMM 2022",
        deployment: Deployment::Extension,
        parameters: &[ALPHA_INGRESS, ALPHA_EGRESS],
    },
    build: |arguments, _| {
        Ok(LosslessPolicy(LosslessThresholds {
            sharing: Sharing::SonicAbm,
            alpha_ingress: arguments.value(ALPHA_INGRESS.name),
            alpha_egress: arguments.value(ALPHA_EGRESS.name),
        })
        .into())
    },
};

/// Reverie.
pub(super) static REVERIE: Definition = Definition {
    info: PolicyInfo {
        name: "reverie",
        summary: "One pool for lossless and lossy packets, with filtered lengths",
        rule: "lossless: pool iff f_in <= G, else headroom and a pause; lossy: accept iff f_out <= G and the pool has \
               room; G = alpha/n_p (b_s - P), f <- min(gamma f + (1 - gamma) q, q) at departures",
        source: "Addanki et al., Reverie, NSDI 2024, §3, Eq. 4 to 6",
        deployment: Deployment::Extension,
        parameters: &[
            ParameterInfo {
                name: "gamma",
                default: "0.999",
                kind: Kind::Fraction,
                search: Search::Range(SearchRange {
                    low: Bound::Value(0.5),
                    high: Bound::Value(0.9999),
                    scale: Scale::Linear,
                    derived: None,
                }),
                meaning: "weight of the old length in the filtered one at a departure, from 0 to 1",
            },
            ALPHA_INGRESS,
            ALPHA_EGRESS,
        ],
    },
    build: |arguments, _| {
        Ok(LosslessPolicy(LosslessThresholds {
            sharing: Sharing::Reverie {
                gamma: arguments.value("gamma"),
            },
            alpha_ingress: arguments.value(ALPHA_INGRESS.name),
            alpha_egress: arguments.value(ALPHA_EGRESS.name),
        })
        .into())
    },
};

const ALPHA_INGRESS: ParameterInfo = ParameterInfo {
    name: "alpha_i",
    default: "1",
    kind: Kind::Positive,
    search: Search::log(1.0 / 64.0, 64.0),
    meaning: "control factor of ingress queues of lossless packets, above 0",
};

const ALPHA_EGRESS: ParameterInfo = ParameterInfo {
    name: "alpha_e",
    default: "1",
    kind: Kind::Positive,
    search: Search::log(1.0 / 64.0, 64.0),
    meaning: "control factor of egress queues of lossy packets, above 0",
};

/// Rule by which the thresholds of queues follow from the occupancy.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Sharing {
    /// Dynamic Threshold at ingress and egress, each in its own pool.
    Sonic,
    /// The threshold of `Sonic`, times the drain rate of the queue and divided by the number of
    /// congested queues (ABM, SIGCOMM 2022).
    SonicAbm,
    /// Dynamic Threshold in one pool for both sides, divided by the number of congested queues, for
    /// lengths that a low-pass filter has smoothed (NSDI 2024, §3).
    Reverie {
        /// Weight of the old length at a departure, γ.
        gamma: f64,
    },
}

impl Sharing {
    /// Returns the name of the policy that has this rule.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Sharing::Sonic => "sonic",
            Sharing::SonicAbm => "sonic-abm",
            Sharing::Reverie { .. } => "reverie",
        }
    }
}

/// A policy's settings of the thresholds in a lossless switch.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LosslessThresholds {
    /// The rule for thresholds.
    pub sharing: Sharing,
    /// α of ingress queues of lossless packets.
    pub alpha_ingress: f64,
    /// α of egress queues of lossy packets.
    pub alpha_egress: f64,
}

/// A policy that configures a lossless switch instead of deciding on every packet: the switch then
/// counts at ingress and egress.
#[derive(Clone, Copy, Debug)]
pub struct LosslessPolicy(pub LosslessThresholds);

impl LosslessPolicy {
    /// Returns SONiC's rule with the same α at both sides: Dynamic Threshold for lossless packets.
    pub fn dynamic_threshold(alpha: f64) -> LosslessPolicy {
        LosslessPolicy(LosslessThresholds {
            sharing: Sharing::Sonic,
            alpha_ingress: alpha,
            alpha_egress: alpha,
        })
    }
}

impl Policy for LosslessPolicy {
    /// Not called: the memory management unit of the switch decides.
    fn on_arrival(&mut self, _view: View<'_>, _packet: PacketView) -> Verdict {
        Verdict::Accept
    }

    fn lossless_thresholds(&self) -> Option<LosslessThresholds> {
        Some(self.0)
    }

    /// The switch knows the threshold, since it depends on the ports by which packets came.
    fn threshold(&self, _view: View<'_>, _queue: usize) -> Option<u64> {
        None
    }

    /// Returns the α of egress queues.
    fn alpha(&self, _queue: usize) -> Option<f64> {
        Some(self.0.alpha_egress)
    }
}
