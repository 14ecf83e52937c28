//! Credence (Addanki, Pacut and Schmid, NSDI 2024, Algorithm 1): FollowLQD with predictions of an
//! oracle.

mod features;
mod forest;
mod model;

pub use features::{Averages, FEATURES, Features};
pub use forest::{Forest, ForestError, MAX_DEPTH, MAX_TREES, Tree};
pub use model::{ForestModel, MODEL_FILE, ModelError};

use bufgym_util::rng;

use super::{
    Arguments, Definition, Deployment, Kind, Loss, PacketView, ParameterInfo, Policy, PolicyInfo,
    Search, Verdict, View, VirtualQueues,
};
use crate::scenario::Scenario;

pub(super) static DEFINITION: Definition = Definition {
    info: PolicyInfo {
        name: "credence",
        summary: "FollowLQD with predictions of what Longest Queue Drop would lose",
        rule: "accept if the longest queue < B/N; else iff q_i + L <= T_i and no loss is predicted",
        source: "Addanki, Pacut and Schmid, NSDI 2024, Algorithm 1",
        deployment: Deployment::NewHardware,
        parameters: &[
            ParameterInfo {
                name: "oracle",
                default: "forest",
                kind: Kind::Choice(&["forest", "perfect"]),
                search: Search::Fixed,
                meaning: "who predicts; `perfect` exists where arrivals are given, in `bufgym slotted`",
            },
            ParameterInfo {
                name: "model",
                default: "a forest trained on ndt-16x1g, compiled in",
                kind: Kind::Path,
                search: Search::Fixed,
                meaning: "folder that `bufgym credence train` wrote",
            },
            ParameterInfo {
                name: "flip",
                default: "0",
                kind: Kind::Fraction,
                search: Search::Fixed,
                meaning: "probability with which a prediction is turned into its opposite",
            },
            ParameterInfo {
                name: "seed",
                default: "1",
                kind: Kind::Seed,
                search: Search::Fixed,
                meaning: "seed of the flips",
            },
        ],
    },
    build: |arguments, scenario| {
        let forest = oracle(arguments)?;
        let credence = Credence::new(scenario, forest);
        let credence = credence.with_flips(arguments.value("flip"), arguments.value("seed"));
        Ok(credence.into())
    },
};

/// Returns the forest that the arguments name, or an error message.
fn oracle(arguments: &Arguments<'_>) -> Result<Forest, String> {
    if arguments.text("oracle") == Some("perfect") {
        return Err(
            "a perfect oracle is undefined here: senders react to losses, so which packets arrive \
             depends on the policy itself and Longest Queue Drop has no losses for the same \
             arrivals; use oracle=forest, or `bufgym slotted`, where arrivals are given"
                .to_owned(),
        );
    }
    let given = arguments.is_given("model");
    let model = match arguments.text("model") {
        Some(path) if given => ForestModel::load(path.as_ref()),
        _ => ForestModel::built_in(),
    };
    model
        .map(|model| model.forest)
        .map_err(|error| error.to_string())
}

/// Follows LQD's queue lengths as [`FollowLqd`](super::FollowLqd) does, and also drops the packets
/// that the oracle expects LQD to lose. While every queue is shorter than `B/N`, with `N` queues,
/// it accepts every packet. This limits the damage of wrong predictions.
#[derive(Clone, Debug)]
pub struct Credence {
    queues: VirtualQueues,
    averages: Averages,
    forest: Forest,
    flips: Option<Flips>,
}

/// Inverts each prediction with a fixed probability.
#[derive(Clone, Copy, Debug)]
struct Flips {
    probability: f64,
    seed: u64,
    arrivals: u64,
}

impl Flips {
    /// Returns true if the prediction of the current arrival is to be inverted. The answer depends on
    /// the number of the arrival only, not on the number of predictions so far.
    fn flips(&self) -> bool {
        let mut stream = rng::stream(self.seed, "credence flip", self.arrivals);
        rng::uniform(&mut stream) < self.probability
    }
}

impl Credence {
    /// Creates the policy for the switch of `scenario`, with empty queues.
    pub fn new(scenario: &Scenario, forest: Forest) -> Credence {
        let queues_per_port = scenario.queues.queues_per_port as usize;
        Credence {
            queues: VirtualQueues::new(scenario.port_count(), queues_per_port),
            averages: Averages::new(scenario),
            forest,
            flips: None,
        }
    }

    /// Inverts each prediction with this probability.
    #[must_use]
    pub fn with_flips(mut self, probability: f64, seed: u64) -> Credence {
        self.flips = (probability > 0.0).then_some(Flips {
            probability,
            seed,
            arrivals: 0,
        });
        self
    }

    /// Returns the virtual queues.
    pub fn virtual_queues(&self) -> &VirtualQueues {
        &self.queues
    }

    fn note_arrival(&mut self, view: View<'_>, packet: PacketView) -> (Features, u64) {
        if let Some(flips) = &mut self.flips {
            flips.arrivals += 1;
        }
        let features = self.averages.observe(view, packet.queue);
        (features, self.queues.arrive(view, packet))
    }
}

/// Returns true if every queue is shorter than `B/N`.
#[inline]
fn all_short(view: View<'_>) -> bool {
    let lengths = view.buffer.queues();
    let longest = lengths.iter().copied().max().unwrap_or(0);
    longest * (lengths.len() as u64) < view.buffer.capacity()
}

impl Policy for Credence {
    #[inline]
    fn on_arrival(&mut self, view: View<'_>, packet: PacketView) -> Verdict {
        let (features, length) = self.note_arrival(view, packet);
        if all_short(view) {
            return Verdict::Accept;
        }
        if view.buffer.queue(packet.queue) + packet.bytes > length {
            return Verdict::Drop;
        }
        let flipped = self.flips.is_some_and(|flips| flips.flips());
        match self.forest.predicts_loss(&features) != flipped {
            true => Verdict::Drop,
            false => Verdict::Accept,
        }
    }

    #[inline]
    fn on_enqueue(&mut self, _view: View<'_>, packet: PacketView) {
        self.queues.enqueued(packet);
    }

    #[inline]
    fn on_departure(&mut self, view: View<'_>, packet: PacketView) {
        self.queues.departed(view, packet);
    }

    fn on_drop(&mut self, view: View<'_>, packet: PacketView, loss: Loss) {
        match loss {
            // `on_arrival` is not called for packets that do not fit.
            Loss::Full => {
                self.note_arrival(view, packet);
            }
            Loss::PushedOut | Loss::Head => self.queues.removed(view, packet),
            Loss::Refused | Loss::Early => {}
        }
    }

    fn threshold(&self, view: View<'_>, queue: usize) -> Option<u64> {
        Some(self.queues.length(view, queue))
    }
}
