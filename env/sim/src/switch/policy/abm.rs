//! Active Buffer Management (Addanki, Apostolaki, Ghobadi, Schmid and Vanbever, SIGCOMM 2022).

mod artefact;
mod headroom;
mod shares;

use bufgym_util::convert::floor_u64;

use super::{
    Arguments, Bound, Definition, Deployment, Kind, Loss, PacketView, ParameterInfo, Policy,
    PolicyInfo, Search, Verdict, View,
};
use crate::scenario::Scenario;
use crate::units::Duration;

pub use artefact::AbmNs3;
use headroom::Headroom;
use shares::Shares;

pub(super) static DEFINITION: Definition = Definition {
    info: PolicyInfo {
        name: "abm",
        summary: "Active Buffer Management: Dynamic Threshold over congested queues and drain rate",
        rule: "accept iff q_i < alpha_p / n_p (B - Q) mu_i / b, n_p congested queues of the priority, mu_i / b the queue's share of its line",
        source: "Addanki et al., SIGCOMM 2022 (Eq. 9)",
        deployment: Deployment::Extension,
        // The defaults are those of the paper's evaluation (§4.1), without headroom.
        parameters: &[
            ParameterInfo {
                name: "alpha",
                default: "0.5",
                kind: Kind::Positive,
                search: Search::log(1.0 / 64.0, 4096.0),
                meaning: "control factor of every priority, above 0",
            },
            ParameterInfo {
                name: "alphas",
                default: "alpha for each",
                kind: Kind::Numbers,
                search: Search::Fixed,
                meaning: "control factors by priority, the first one's first",
            },
            ParameterInfo {
                name: "alpha_unscheduled",
                default: "64",
                kind: Kind::Positive,
                search: Search::log(1.0 / 64.0, 65_536.0),
                meaning: "control factor of packets of a flow's first round trip (§3.3)",
            },
            ParameterInfo {
                name: "update_us",
                default: "base RTT",
                kind: Kind::Positive,
                search: Search::log(1.0, 1e5).from(Bound::Value(50.0)),
                meaning: "time between two updates of n_p and mu, microseconds",
            },
            ParameterInfo {
                name: "headroom_bytes",
                default: "0",
                kind: Kind::Bytes,
                search: Search::log_to(1.0, Bound::Buffer(0.5)),
                meaning: "part of the buffer that only unscheduled packets may use, bytes",
            },
            ParameterInfo {
                name: "periodic_rtts",
                default: "off",
                kind: Kind::Count,
                search: Search::Fixed,
                meaning: "today's switches: DT whose alpha per queue is rewritten every so many base RTT (§4.4); tells no packet apart",
            },
            ParameterInfo {
                name: "estimate",
                default: "paper",
                kind: Kind::Choice(&["paper", "artefact"]),
                search: Search::Fixed,
                meaning: "how n_p and mu are measured: as in the paper, or as in its published ns-3 code",
            },
        ],
    },
    build: |arguments, scenario| {
        let config = ActiveBufferConfig::from_arguments(arguments, scenario)?;
        if arguments.text("estimate") == Some("artefact") {
            if config.headroom_bytes > 0 {
                return Err(
                    "headroom_bytes has no meaning with estimate=artefact; leave one out"
                        .to_owned(),
                );
            }
            return Ok(AbmNs3::new(config, scenario).into());
        }
        Ok(ActiveBufferManagement::new(config, scenario).into())
    },
};

/// Parameters of ABM.
#[derive(Clone, PartialEq, Debug)]
pub struct ActiveBufferConfig {
    /// Control factor α_p of every priority.
    pub alphas: Vec<f64>,
    /// Control factor of unscheduled packets; `None` treats them like the others.
    pub alpha_unscheduled: Option<f64>,
    /// Time between two updates of n_p and μ.
    pub update: Duration,
    /// Part of the buffer that only unscheduled packets may use, bytes.
    pub headroom_bytes: u64,
}

impl ActiveBufferConfig {
    fn from_arguments(arguments: &Arguments<'_>, scenario: &Scenario) -> Result<Self, String> {
        let alphas = alphas(arguments, scenario.queues.queues_per_port as usize)?;
        if let Some(rtts) = arguments.optional::<u32>("periodic_rtts") {
            let unused = ["alpha_unscheduled", "headroom_bytes", "update_us"];
            if let Some(name) = unused.into_iter().find(|name| arguments.is_given(name)) {
                return Err(format!(
                    "{name} has no meaning with periodic_rtts; leave one out"
                ));
            }
            return Ok(ActiveBufferConfig {
                alphas,
                alpha_unscheduled: None,
                update: scenario.base_rtt().saturating_mul(u64::from(rtts)),
                headroom_bytes: 0,
            });
        }
        let update = arguments.microseconds("update_us");
        Ok(ActiveBufferConfig {
            alphas,
            alpha_unscheduled: Some(arguments.value("alpha_unscheduled")),
            update: update.unwrap_or_else(|| scenario.base_rtt()),
            headroom_bytes: headroom_bytes(arguments, scenario)?,
        })
    }
}

fn alphas(arguments: &Arguments<'_>, priorities: usize) -> Result<Vec<f64>, String> {
    let Some(alphas) = arguments.numbers("alphas") else {
        return Ok(vec![arguments.value("alpha"); priorities]);
    };
    if arguments.is_given("alpha") {
        return Err("alpha and alphas are both given; leave one out".to_owned());
    }
    if alphas.len() != priorities {
        return Err(format!(
            "alphas has {} values, but ports have queues_per_port = {priorities}; give one for each",
            alphas.len()
        ));
    }
    Ok(alphas)
}

fn headroom_bytes(arguments: &Arguments<'_>, scenario: &Scenario) -> Result<u64, String> {
    let bytes = arguments.value("headroom_bytes");
    let most = scenario
        .network
        .buffer_bytes
        .saturating_sub(scenario.full_packet_bytes());
    if bytes > 0 && bytes > most {
        return Err(format!(
            "headroom_bytes={bytes} leaves no packet to the other {} of the buffer; at most {most}",
            scenario.network.buffer_bytes
        ));
    }
    Ok(bytes)
}

/// Accepts iff `q < T`, `T = α_p · (1/n_p) · (B - Q) · μ/b`, with one α for all unscheduled
/// packets.
///
/// `n_p` is the number of congested queues of the priority and `μ/b` the queue's share of its line.
/// Both are measured periodically. The headroom is not part of `B` and `Q`.
#[derive(Clone, Debug)]
pub struct ActiveBufferManagement {
    /// α_p of every queue.
    alphas: Box<[f64]>,
    alpha_unscheduled: Option<f64>,
    shares: Shares,
    headroom: Option<Box<Headroom>>,
}

impl ActiveBufferManagement {
    /// Creates the policy for an empty switch: no queue is congested, and each has its line to itself.
    ///
    /// # Panics
    /// When `config.alphas` does not have one α per priority.
    pub fn new(config: ActiveBufferConfig, scenario: &Scenario) -> Self {
        let (ports, priorities) = (
            scenario.port_count(),
            scenario.queues.queues_per_port as usize,
        );
        assert_eq!(config.alphas.len(), priorities, "one α per priority");
        let queues = ports * priorities;
        ActiveBufferManagement {
            alphas: config.alphas.repeat(ports).into_boxed_slice(),
            alpha_unscheduled: config.alpha_unscheduled,
            shares: Shares::new(queues, priorities, config.update, scenario),
            headroom: (config.headroom_bytes > 0)
                .then(|| Box::new(Headroom::new(config.headroom_bytes, queues))),
        }
    }

    /// Returns `B - Q` of the rule: the free bytes of the shared pool.
    #[inline]
    fn free(&self, view: View<'_>) -> u64 {
        match &self.headroom {
            None => view.buffer.free(),
            Some(headroom) => headroom.free_outside(view.buffer),
        }
    }

    /// Decides with a headroom. `below` is the answer of the threshold test.
    #[cold]
    fn with_headroom(&mut self, below: bool, free: u64, packet: PacketView) -> Verdict {
        let fits = below && packet.bytes <= free;
        let Some(headroom) = &mut self.headroom else {
            return Verdict::Drop;
        };
        if headroom.admits(fits, packet) {
            Verdict::Accept
        } else {
            Verdict::Drop
        }
    }
}

impl Policy for ActiveBufferManagement {
    #[inline]
    fn on_arrival(&mut self, view: View<'_>, packet: PacketView) -> Verdict {
        let free = self.free(view);
        if view.now >= self.shares.next_update() {
            self.shares.update(view, free, &self.alphas);
        }
        let alpha = match self.alpha_unscheduled {
            Some(alpha) if packet.unscheduled => alpha,
            _ => self.alphas[packet.queue],
        };
        let threshold = alpha * self.shares.factor(packet.queue) * free as f64;
        let below = (view.buffer.queue(packet.queue) as f64) < threshold;
        if self.headroom.is_some() {
            return self.with_headroom(below, free, packet);
        }
        if below {
            Verdict::Accept
        } else {
            Verdict::Drop
        }
    }

    #[inline]
    fn on_enqueue(&mut self, view: View<'_>, packet: PacketView) {
        self.shares.enqueued(view, packet);
        if let Some(headroom) = &mut self.headroom {
            headroom.enqueued(packet);
        }
    }

    #[inline]
    fn on_departure(&mut self, view: View<'_>, packet: PacketView) {
        self.shares.sent(view, packet);
        if let Some(headroom) = &mut self.headroom {
            headroom.left(packet);
        }
    }

    /// A packet that is dropped at the head leaves its queue without being sent.
    fn on_drop(&mut self, view: View<'_>, packet: PacketView, loss: Loss) {
        if !matches!(loss, Loss::PushedOut | Loss::Head) {
            return;
        }
        self.shares.removed(view, packet.queue);
        if let Some(headroom) = &mut self.headroom {
            headroom.left(packet);
        }
    }

    /// Returns the threshold of scheduled packets.
    fn threshold(&self, view: View<'_>, queue: usize) -> Option<u64> {
        let alpha = self.alphas[queue] * self.shares.factor(queue);
        Some(floor_u64(alpha * self.free(view) as f64))
    }

    /// Returns the factor of `B - Q`: the α with which Dynamic Threshold would have the same threshold.
    fn alpha(&self, queue: usize) -> Option<f64> {
        Some(self.alphas[queue] * self.shares.factor(queue))
    }

    /// Sets α_p, which applies to scheduled packets. `n_p` and `μ/b` stay as measured.
    fn set_alpha(&mut self, queue: usize, alpha: f64) -> bool {
        self.alphas[queue] = alpha;
        true
    }
}

#[cfg(test)]
mod tests;
