//! Pairs of forks: twice the same future, except for the actions of a few decisions.
//!
//! From one moment two copies of a simulation go on with the same policy. For the first [`SHIFTED`] decisions the
//! actions of every port are raised in one copy where they are lowered in the other, at random. The difference of
//! their rewards is the effect of the actions, without most of the noise of the traffic: both have the same.

use bufgym_models::critic::STATE;
use bufgym_util::convert::index;
use serde::{Deserialize, Serialize};

/// Decisions of a copy whose actions are shifted.
pub const SHIFTED: usize = 8;

/// Shifted decisions of both copies together.
pub const PAIR_ROWS: usize = 2 * SHIFTED;

/// Pairs from which on batches have some.
const MIN_PAIRS: u64 = 64;

/// Two forks of one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pair {
    /// Inputs of a critic at the shifted decisions, those of one copy after those of the other, `[16, ports, 62]`.
    pub state: Vec<f32>,
    /// The actions in (-1, 1), `[16, ports, outputs]`.
    pub actions: Vec<f32>,
    /// What the policy would have done there, `[16, ports, outputs]`.
    pub means: Vec<f32>,
    /// Discounts since the fork, negative in the second copy; zero where a copy ended before, `[16]`.
    pub weights: Vec<f32>,
    /// Discounted rewards of the first copy less those of the second, `[ports]`.
    pub differences: Vec<f32>,
}

/// The newest pairs, and how many there have been.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Pairs {
    /// Ports of a pair, and values of an action of all ports together.
    sizes: (usize, usize),
    slots: usize,
    /// `[slots, floats of a pair]`, as far as there were pairs.
    data: Vec<f32>,
    pub(super) end: u64,
}

/// Pairs to learn from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PairBatch {
    /// Number of pairs.
    pub pairs: usize,
    /// `[pairs * 16 * ports, 62]`
    pub state: Vec<f32>,
    /// Actions in (-1, 1), `[pairs * 16, ports * outputs]`.
    pub actions: Vec<f32>,
    /// `[pairs * 16, ports * outputs]`
    pub means: Vec<f32>,
    /// `[pairs * 16]`
    pub weights: Vec<f32>,
    /// `[pairs, ports]`
    pub differences: Vec<f32>,
}

impl PairBatch {
    /// The parts of the pairs, in their order.
    fn fields(&mut self) -> [&mut Vec<f32>; 5] {
        [
            &mut self.state,
            &mut self.actions,
            &mut self.means,
            &mut self.weights,
            &mut self.differences,
        ]
    }
}

/// Floats of the parts of a pair, in their order.
fn parts((ports, values): (usize, usize)) -> [usize; 5] {
    [
        PAIR_ROWS * ports * STATE,
        PAIR_ROWS * values,
        PAIR_ROWS * values,
        PAIR_ROWS,
        ports,
    ]
}

/// Bytes of a pair.
pub(super) fn pair_bytes(sizes: (usize, usize)) -> usize {
    4 * parts(sizes).iter().sum::<usize>()
}

impl Pairs {
    pub(super) fn new(slots: usize, sizes: (usize, usize)) -> Pairs {
        Pairs {
            sizes,
            slots,
            data: Vec::new(),
            end: 0,
        }
    }

    /// Restores pairs of which `end` there have been. `None` where the floats are not those of so many.
    pub(super) fn restored(
        slots: usize,
        sizes: (usize, usize),
        end: u64,
        data: Vec<f32>,
    ) -> Option<Pairs> {
        let held = end.min(slots as u64);
        let bytes = held.checked_mul(pair_bytes(sizes) as u64)?;
        (4 * data.len() as u64 == bytes).then_some(Pairs {
            sizes,
            slots,
            data,
            end,
        })
    }

    pub(super) fn slots(&self) -> usize {
        self.slots
    }

    pub(super) fn data(&self) -> &[f32] {
        &self.data
    }

    fn held(&self) -> u64 {
        self.end.min(self.slots as u64)
    }

    /// # Panics
    /// When the pair has another number of ports or outputs.
    pub(super) fn push(&mut self, pair: &Pair) {
        if self.slots == 0 {
            return;
        }
        let fields = [
            &pair.state,
            &pair.actions,
            &pair.means,
            &pair.weights,
            &pair.differences,
        ];
        let lengths = fields.map(Vec::len);
        assert_eq!(lengths, parts(self.sizes), "a pair of as many ports");
        let size: usize = lengths.iter().sum();
        let place = index(self.end % self.slots as u64) * size;
        let room = self.data.len().max(place + size);
        self.data.resize(room, 0.0);
        let mut rest = &mut self.data[place..][..size];
        for field in fields {
            let (part, after) = rest.split_at_mut(field.len());
            part.copy_from_slice(field);
            rest = after;
        }
        self.end += 1;
    }

    /// Draws so many pairs, with replacement; none where few are held. `draw` returns a number below its argument.
    pub(super) fn sample(
        &self,
        count: usize,
        batch: &mut PairBatch,
        mut draw: impl FnMut(u64) -> u64,
    ) {
        batch.pairs = 0;
        batch.fields().into_iter().for_each(Vec::clear);
        if self.held() < MIN_PAIRS.min(self.slots as u64).max(1) {
            return;
        }
        let lengths = parts(self.sizes);
        let size: usize = lengths.iter().sum();
        batch.pairs = count;
        for _ in 0..count {
            let place = index(draw(self.held())) * size;
            let mut rest = &self.data[place..][..size];
            for (field, length) in batch.fields().into_iter().zip(lengths) {
                let (part, after) = rest.split_at(length);
                field.extend_from_slice(part);
                rest = after;
            }
        }
    }
}
