//! Soft actor-critic for the ports of a switch: each is an agent, and all share their weights.
//!
//! Besides the differences in [`sac`](crate::sac), this differs from the paper:
//!
//! | difference | setting | reason and effect |
//! |---|---|---|
//! | The rewards of 8 decisions precede a value, without their entropy | `learner.n_step` | Most of what a decision changes comes later. With 16 a policy is at 0.820 after 50,000 decisions instead of 0.772, with 32 or 64 later still (two seeds). Not measured from a rule |
//! | A port also gets a share of the other ports' rewards | `ports.share` | A high threshold harms others. With a share of 0.1 or 0.6 instead of 0.3 learning is slower at first (two seeds) |
//! | Rewards are divided by a scale that is measured once | | Scenarios differ a hundredfold. Five seeds that measured it in 128 transitions came to 0.766 of Dynamic Threshold, five with 4,096 to 0.747 |
//! | Ports without flows count nothing | | Two thirds of the ports are idle, and nothing depends on their actions |
//! | Critics see senders and future arrivals | | Only training needs critics (Pinto et al. 2018). Not measured apart |
//! | Critics have layer norm | | It bounds values outside the data (Ball et al. 2023). Not measured apart |
//! | No gradient of the deviations enters the layers that means share | | Entropy would move the means: a good policy fell from 0.743 to 0.938 |

use std::path::Path;

use bufgym_env::control::{ActionSet, FEATURES, LEVELS};
use bufgym_models::critic::{BusyPorts, FRAMES, STATE};
use bufgym_models::files::current_folder;
use bufgym_models::windows::WINDOW;
use bufgym_models::{Actor, ActorOutput, ActorWeights, Device, PortCritic};
use bufgym_util::convert::single;
use burn::tensor::{Tensor, TensorData};
use rand::{Rng as _, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};

use crate::replay::{Batch, PAIR_ROWS};
use crate::sac::{
    ActionValue, Observation, PairSamples, Policy, Sac, SacConfig, SacRecord, Samples,
    UpdateMetrics,
};
use crate::scales::Scales;
use crate::stored::{Checked, Files, Form, LearnerError, Sums, corrupt, read_record};

/// Returns are divided by this many root mean squares of theirs. Of five seeds that were divided by 0.8 to 1.3, the two
/// with the least learned little; with 3, learning is slow at first.
const RETURN_SCALE: f32 = 1.5;

/// Settings for the ports of a switch that do not depend on the learning algorithm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PortsConfig {
    /// Width of the critics' layers.
    pub critic_width: usize,
    /// Share of the other ports' rewards that is added to a port's own reward. With a mean over ports, the noise of all
    /// other ports would hide the effect of one port.
    pub share: f64,
    /// Level of α at which an untrained actor's mean lies. If absent, it is 2 (α = 1, the usual α of Dynamic
    /// Threshold). Where decisions also set early drop it is 5 (α = 8), because thresholds matter less there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_level: Option<u8>,
    /// Level of the second output, if there is one, at which an untrained actor's mean lies. If absent, it is 6 for early
    /// drop (a gap of at most 32 packets) and 4 for the ingress α (4).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_second: Option<u8>,
}

impl Default for PortsConfig {
    fn default() -> PortsConfig {
        PortsConfig {
            critic_width: 96,
            share: 0.3,
            start_level: None,
            start_second: None,
        }
    }
}

impl PortsConfig {
    /// Checks every setting's range.
    ///
    /// # Errors
    /// Names the first setting that is out of range.
    pub fn validate(&self) -> Result<(), LearnerError> {
        let level = |level: u8| usize::from(level) < LEVELS;
        let checks = [
            (
                "critic_width",
                (1..=4096).contains(&self.critic_width),
                "between 1 and 4096",
            ),
            (
                "share",
                (0.0..=1.0).contains(&self.share),
                "between 0 and 1",
            ),
            (
                "start_level",
                self.start_level.is_none_or(level),
                "a level from 0 to 7",
            ),
            (
                "start_second",
                self.start_second.is_none_or(level),
                "a level from 0 to 7",
            ),
        ];
        let wrong = checks.into_iter().find(|&(_, fine, _)| !fine);
        wrong.map_or(Ok(()), |(name, _, range)| {
            Err(LearnerError::Setting { name, range })
        })
    }

    /// Returns random weights of an actor whose means are at the levels of [`PortsConfig`].
    pub(crate) fn begin(&self, actions: ActionSet, rng: &mut Xoshiro256PlusPlus) -> ActorWeights {
        let mut weights = ActorWeights::random_for(actions, rng);
        weights.widen();
        let [first, second] = if actions.drops_early() {
            [5, 6]
        } else {
            [2, 4]
        };
        let levels = [
            self.start_level.unwrap_or(first),
            self.start_second.unwrap_or(second),
        ];
        weights.begin_at(&levels[..actions.outputs()]);
        weights
    }
}

/// The ports of some switches. Each network reads the part that it needs.
#[derive(Clone, Debug)]
pub struct PortStates {
    /// Unfolded observations, `[rows * ports * 8, 15]`.
    pub windows: Tensor<2>,
    /// Newest frames and privileged features, `[rows * ports, STATE]`.
    pub state: Tensor<2>,
    /// The ports with active flows.
    pub busy: BusyPorts,
}

impl Observation for PortStates {
    fn autodiff(&self) -> PortStates {
        PortStates {
            windows: self.windows.clone().autodiff(),
            state: self.state.clone().autodiff(),
            busy: self.busy.autodiff(),
        }
    }
}

impl Policy for Actor {
    type Observation = PortStates;

    fn gaussian(&self, seen: &PortStates, rows: usize) -> ActorOutput {
        self.forward(seen.windows.clone(), rows)
    }
}

impl ActionValue<PortStates> for PortCritic {
    fn values(&self, seen: &PortStates, actions: Tensor<2>) -> Tensor<2> {
        self.forward(seen.state.clone(), &seen.busy, actions)
    }
}

/// The learner of a training.
pub struct PortSac {
    sac: Sac<Actor, PortCritic>,
    ports: PortsConfig,
    actions: ActionSet,
    device: Device,
    /// Set by the first update.
    scales: Option<Scales>,
    /// True if the policy was given. Then the scales must not change its decisions.
    is_given: bool,
}

impl PortSac {
    /// A learner with random weights for decisions that set `actions`. The same seed gives the same weights.
    ///
    /// # Errors
    /// When a setting is out of range.
    pub fn new(
        config: SacConfig,
        ports: PortsConfig,
        actions: ActionSet,
        seed: u64,
        device: &Device,
    ) -> Result<PortSac, LearnerError> {
        config.validate()?;
        ports.validate()?;
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let actor = Actor::from_weights(&ports.begin(actions, &mut rng), device);
        let critics = (0..config.critics)
            .map(|_| PortCritic::random(ports.critic_width, actions.outputs(), &mut rng, device))
            .collect();
        Ok(PortSac {
            sac: Sac::new(config, actor, critics, rng.next_u64(), device)?,
            device: device.clone().without_autodiff(),
            scales: None,
            is_given: false,
            ports,
            actions,
        })
    }

    /// A host copy of the policy.
    pub fn actor_weights(&self) -> ActorWeights {
        self.exported(&self.sac.policy())
    }

    /// A host copy of the policy's moving average.
    pub fn averaged_weights(&self) -> ActorWeights {
        self.exported(&self.sac.averaged())
    }

    /// Continues from these weights. Where they are good, the settings should have been
    /// [settled](SacConfig::settle) for that.
    pub fn set_weights(&mut self, weights: &ActorWeights) {
        let mut weights = weights.clone();
        if let Some(scales) = &self.scales {
            weights.scale_inputs(&scales.features);
        }
        self.is_given = true;
        self.sac
            .set_policy(&Actor::from_weights(&weights, &self.device));
    }

    /// Returns the outputs that its decisions set.
    pub fn actions(&self) -> ActionSet {
        self.actions
    }

    /// Updates so far.
    pub fn updates(&self) -> u64 {
        self.sac.updates()
    }

    /// Returns true if the scales of inputs and returns have been measured.
    pub fn has_scales(&self) -> bool {
        self.scales.is_some()
    }

    /// Measures the scales of inputs and returns in a batch. A return is rare and large or frequent and small, so the
    /// batch should have thousands of transitions.
    pub fn measure_scales(&mut self, batch: &Batch) {
        let weights = self.is_given.then(|| self.actor_weights());
        let rewards = shared(&batch.rewards, batch.ports, self.ports.share);
        let ports = batch.state.as_chunks::<STATE>().0.iter().zip(rewards);
        self.scales = Some(Scales::of(ports.filter(|(state, _)| is_busy(state))));
        if let Some(weights) = weights {
            self.set_weights(&weights);
        }
    }

    /// Learns from a batch. Without [scales](PortSac::measure_scales) it also sets these.
    ///
    /// # Panics
    /// When the batch is empty.
    pub fn update(&mut self, batch: &Batch) -> UpdateMetrics {
        if !self.has_scales() {
            self.measure_scales(batch);
        }
        let samples = self.samples(batch);
        self.sac.update(&samples)
    }

    /// Folds the scales of the inputs into the first layer.
    fn exported(&self, actor: &Actor) -> ActorWeights {
        let mut weights = actor.to_weights();
        if let Some(scales) = &self.scales {
            weights.scale_inputs(&scales.factors());
        }
        weights
    }

    fn samples(&self, batch: &Batch) -> Samples<PortStates> {
        let (rows, ports) = (batch.rows, batch.ports);
        let scale = self
            .scales
            .as_ref()
            .map_or(1.0, |scales| RETURN_SCALE * scales.returns);
        let rewards = shared(&batch.rewards, ports, self.ports.share);
        let now = self.states(&batch.windows, &batch.state, ports);
        let next = self.states(&batch.next_windows, &batch.next_state, ports);
        Samples {
            actions: self.tensor(
                batch.raw.iter().map(|&raw| libm::tanhf(raw)),
                [rows, batch.raw.len() / rows],
            ),
            rewards: self.tensor(rewards.map(|reward| reward / scale), [rows, ports]),
            discounts: self.tensor(batch.discounts.iter().copied(), [rows, 1]),
            active: now.busy.mask.clone(),
            next_active: next.busy.mask.clone(),
            now,
            next,
            pairs: self.pairs(batch, scale),
        }
    }

    fn pairs(&self, batch: &Batch, scale: f32) -> Option<PairSamples<PortStates>> {
        let (pairs, ports) = (&batch.pairs, batch.ports);
        if pairs.pairs == 0 {
            return None;
        }
        let rows = pairs.pairs * PAIR_ROWS;
        let actions = [rows, pairs.actions.len() / rows];
        let states = pairs.state.as_chunks::<STATE>().0;
        let mut active = vec![0.0; pairs.pairs * ports];
        for (place, state) in states.iter().enumerate() {
            if is_busy(state) {
                active[place / ports / PAIR_ROWS * ports + place % ports] = 1.0;
            }
        }
        let differences = shared(&pairs.differences, ports, self.ports.share);
        Some(PairSamples {
            seen: self.states(&[], &pairs.state, ports),
            actions: self.tensor(pairs.actions.iter().copied(), actions),
            means: self.tensor(pairs.means.iter().copied(), actions),
            weights: self.tensor(pairs.weights.iter().copied(), [rows, 1]),
            differences: self.tensor(differences.map(|of| of / scale), [pairs.pairs, ports]),
            active: self.tensor(active.iter().copied(), [pairs.pairs, ports]),
        })
    }

    fn states(&self, windows: &[f32], state: &[f32], ports: usize) -> PortStates {
        let (mut windows, mut scaled) = (windows.to_vec(), state.to_vec());
        if let Some(scales) = &self.scales {
            scales.scale_windows(&mut windows);
            scales.scale_state(&mut scaled);
        }
        let busy: Vec<bool> = state.as_chunks::<STATE>().0.iter().map(is_busy).collect();
        let count = state.len() / STATE;
        PortStates {
            busy: BusyPorts::new(&busy, ports, &self.device),
            state: self.tensor(scaled.into_iter(), [count, STATE]),
            windows: self.tensor(windows.iter().copied(), [windows.len() / WINDOW, WINDOW]),
        }
    }

    fn tensor(&self, values: impl Iterator<Item = f32>, shape: [usize; 2]) -> Tensor<2> {
        Tensor::from_data(TensorData::new(values.collect(), shape), &self.device)
    }
}

/// Returns true if a port has active flows: the first privileged feature is their number.
fn is_busy(state: &[f32; STATE]) -> bool {
    state[FRAMES * FEATURES] > 0.0
}

/// Returns rewards `[rows, ports]`: each port's own reward plus `share` of the sum of the other ports' rewards.
fn shared(rewards: &[f32], ports: usize, share: f64) -> impl Iterator<Item = f32> + '_ {
    let share = single(share);
    rewards.chunks_exact(ports).flat_map(move |row| {
        let total: f32 = row.iter().sum();
        row.iter().map(move |own| own + share * (total - own))
    })
}

// --- Storage ------------------------------------------------------------------------------------

const FORM: Form = Form {
    record: "sac.json",
    checksum: "sac.sha256",
    version: 7,
};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    format_version: u32,
    ports: PortsConfig,
    actions: ActionSet,
    /// Features, means and deviations of the state, returns; none before the first update.
    scales_bits: Option<Vec<u32>>,
    is_given: bool,
    sac: SacRecord,
    /// SHA-256 of each of the other files.
    sha256: Sums,
}

impl PortSac {
    /// Writes the whole state into an existing folder, and waits until it is on the disk.
    ///
    /// # Errors
    /// Returns errors of the file system.
    pub fn save(&self, dir: &Path) -> Result<(), LearnerError> {
        let mut files = Files::default();
        let sac = self.sac.write(dir, &mut files)?;
        let record = Record {
            format_version: FORM.version,
            ports: self.ports.clone(),
            actions: self.actions,
            scales_bits: self.scales.as_ref().map(Scales::to_bits),
            is_given: self.is_given,
            sac,
            sha256: files.sums(),
        };
        files.write(dir, &FORM, &record)
    }

    /// Reads what [`PortSac::save`] wrote. The next update gives the same weights as without saving and loading.
    ///
    /// # Errors
    /// When a file is missing, truncated, altered or of another version.
    pub fn load(dir: &Path, device: &Device) -> Result<PortSac, LearnerError> {
        let dir = &current_folder(dir);
        let record: Record = read_record(dir, &FORM)?;
        let mut learner = PortSac::new(
            record.sac.config.clone(),
            record.ports,
            record.actions,
            0,
            device,
        )?;
        let files = Checked {
            dir,
            form: &FORM,
            sums: &record.sha256,
            most: most_bytes(&learner.ports, record.sac.config.critics),
        };
        learner.sac.read(record.sac, &files)?;
        learner.scales = stored_scales(record.scales_bits.as_deref(), dir, &FORM)?;
        learner.is_given = record.is_given;
        Ok(learner)
    }
}

/// Returns the largest size of a file of a learner, bytes: two networks for each critic, of sixteen layers of its
/// width, and an allowance for parts that do not depend on the width.
pub(crate) fn most_bytes(ports: &PortsConfig, critics: usize) -> u64 {
    let width = ports.critic_width as u64;
    width
        .saturating_mul(width)
        .saturating_mul(2 * 16 * 4)
        .saturating_mul(critics as u64)
        .saturating_add(32 << 20)
}

/// The scales of a record.
pub(crate) fn stored_scales(
    bits: Option<&[u32]>,
    dir: &Path,
    form: &Form,
) -> Result<Option<Scales>, LearnerError> {
    let other = || corrupt(dir, form.record, "its scales are of another version");
    bits.map(|bits| Scales::from_bits(bits).ok_or_else(other))
        .transpose()
}

#[cfg(test)]
mod tests;
