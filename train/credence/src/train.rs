//! The random forest: grown by smartcore, its leaves filled from all training data.

use bufgym_sim::switch::policy::{Features, MAX_DEPTH, MAX_TREES, Tree};
use bufgym_util::convert::{signed, single};
use bufgym_util::rng;
use serde::Deserialize;
use smartcore::ensemble::random_forest_classifier::{
    RandomForestClassifier, RandomForestClassifierParameters,
};
use smartcore::linalg::basic::matrix::DenseMatrix;
use thiserror::Error;

use crate::record::Arrival;

/// Settings of the forest.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Settings {
    /// Number of trees.
    pub trees: u16,
    /// Largest number of splits from root to leaf.
    pub depth: u16,
    /// Seed of samples and of the features among which a split may choose.
    pub seed: u64,
}

impl Settings {
    /// Checks that a forest can be grown with these settings.
    ///
    /// # Errors
    /// When the number of trees or their depth is out of range.
    pub fn check(&self) -> Result<(), TrainError> {
        let limits = [
            ("trees", self.trees, MAX_TREES),
            ("depth", self.depth, MAX_DEPTH),
        ];
        for (what, value, most) in limits {
            if value == 0 || usize::from(value) > most {
                return Err(TrainError::Range { what, value, most });
            }
        }
        Ok(())
    }
}

/// Kept arrivals for each lost one that the trees are grown from.
///
/// Losses are a percent of the arrivals or fewer, so a split over all arrivals gains little.
/// Therefore all lost arrivals and a sample of the kept ones decide the splits. The shares in the
/// leaves are computed from all training data, so they are estimates of the probability of a loss.
const KEPT_PER_LOST: usize = 3;

/// Limit on the lost arrivals from which the trees are grown. If there are more, they are sampled.
const MAX_LOST: usize = 50_000;

/// Fewest arrivals in a leaf, among those that its tree is grown from.
const LEAF: usize = 20;

/// The reason why a forest could not be grown.
#[derive(Debug, Error)]
pub enum TrainError {
    /// The settings are out of range.
    #[error("{what} {value} is out of range: {what} must be from 1 to {most}")]
    Range {
        /// The setting.
        what: &'static str,
        /// Value of the setting.
        value: u16,
        /// The largest allowed value.
        most: usize,
    },
    /// All arrivals have the same label.
    #[error(
        "Longest Queue Drop lost {lost} of {arrivals} packets in the traces to learn from: needs some lost and some kept; raise the load or the number of traces"
    )]
    OneClass {
        /// Lost arrivals.
        lost: usize,
        /// All arrivals.
        arrivals: usize,
    },
    /// The library did not grow a forest.
    #[error("the forest could not be grown: {0}")]
    Library(String),
}

/// Grows a forest. Equal data and settings give equal trees.
///
/// # Errors
/// When the settings are out of range, or all arrivals have the same label.
pub fn train(traces: &[Vec<Arrival>], settings: Settings) -> Result<Vec<Tree>, TrainError> {
    settings.check()?;
    let Settings { trees, depth, .. } = settings;
    let (rows, labels) = sample(traces, settings.seed)?;
    let library = |error: String| TrainError::Library(error);
    let matrix = DenseMatrix::from_2d_vec(&rows).map_err(|error| library(error.to_string()))?;
    let parameters = RandomForestClassifierParameters::default()
        .with_n_trees(trees)
        // The library counts levels of nodes.
        .with_max_depth(depth + 1)
        .with_min_samples_leaf(LEAF)
        .with_min_samples_split(2 * LEAF)
        .with_seed(settings.seed);
    let forest = RandomForestClassifier::fit(&matrix, &labels, parameters)
        .map_err(|error| library(error.to_string()))?;
    let grown = serde_json::to_value(&forest).map_err(|error| library(error.to_string()))?;
    let grown: Grown = serde_json::from_value(grown).map_err(|error| library(error.to_string()))?;
    let fill = |tree: GrownTree| filled(tree.arrays(), traces);
    Ok(grown.trees.into_iter().map(fill).collect())
}

/// The training set of the trees: features and labels, where 1 is a loss.
fn sample(traces: &[Vec<Arrival>], seed: u64) -> Result<(Vec<Vec<f32>>, Vec<u32>), TrainError> {
    let arrivals = || traces.iter().flatten();
    let all = arrivals().count();
    let lost = arrivals().filter(|arrival| arrival.lost).count();
    if lost == 0 || lost == all {
        return Err(TrainError::OneClass {
            lost,
            arrivals: all,
        });
    }
    let mut random = rng::stream(seed, "credence sample", 0);
    let mut draw = |wanted: usize, of: usize| rng::below(&mut random, of as u64) < wanted as u64;
    let wanted = lost.min(MAX_LOST);
    let (mut rows, mut labels) = (Vec::new(), Vec::new());
    for arrival in arrivals() {
        let taken = match arrival.lost {
            true => draw(wanted, lost),
            false => draw(KEPT_PER_LOST * wanted, all - lost),
        };
        if taken {
            rows.push(arrival.features.to_vec());
            labels.push(u32::from(arrival.lost));
        }
    }
    Ok((rows, labels))
}

/// The library's serialised form of a forest.
#[derive(Deserialize)]
struct Grown {
    trees: Vec<GrownTree>,
}

#[derive(Deserialize)]
struct GrownTree {
    nodes: Vec<GrownNode>,
}

#[derive(Deserialize)]
struct GrownNode {
    split_feature: usize,
    split_value: Option<f64>,
    true_child: Option<usize>,
    false_child: Option<usize>,
}

impl GrownTree {
    /// The splits; the shares are filled in later.
    fn arrays(&self) -> Tree {
        let mut tree = Tree::default();
        for node in &self.nodes {
            let split = match (node.split_value, node.true_child, node.false_child) {
                (Some(value), Some(left), Some(right)) => (
                    signed(node.split_feature),
                    single(value),
                    signed(left),
                    signed(right),
                ),
                _ => (-1, 0.0, -1, -1),
            };
            tree.feature.push(split.0);
            tree.split.push(split.1);
            tree.left.push(split.2);
            tree.right.push(split.3);
            tree.lost.push(0.0);
        }
        tree
    }
}

/// The tree with the share of lost arrivals in every node.
fn filled(mut tree: Tree, traces: &[Vec<Arrival>]) -> Tree {
    let mut counts = vec![[0_u64; 2]; tree.feature.len()];
    for arrival in traces.iter().flatten() {
        let mut node = 0;
        loop {
            counts[node][usize::from(arrival.lost)] += 1;
            match next(&tree, node, &arrival.features) {
                Some(child) => node = child,
                None => break,
            }
        }
    }
    for (lost, [kept, gone]) in tree.lost.iter_mut().zip(counts) {
        *lost = gone as f32 / (kept + gone).max(1) as f32;
    }
    tree
}

/// The child node of an arrival; none at a leaf.
fn next(tree: &Tree, node: usize, features: &Features) -> Option<usize> {
    let feature = usize::try_from(tree.feature[node]).ok()?;
    let left = features[feature] <= tree.split[node];
    let child = if left {
        tree.left[node]
    } else {
        tree.right[node]
    };
    usize::try_from(child).ok()
}

#[cfg(test)]
mod tests {
    use bufgym_sim::switch::policy::{FEATURES, Forest};
    use bufgym_sim::units::Instant;

    use super::*;

    /// Returns arrivals that are lost exactly where queue and occupancy are both long, one in fifty.
    fn corner() -> Vec<Vec<Arrival>> {
        let mut random = rng::stream(1, "corner", 0);
        let mut arrival = || {
            let features = [(); FEATURES.len()].map(|()| rng::uniform(&mut random) as f32);
            Arrival {
                at: Instant::ZERO,
                queue: 0,
                bytes: 1_500,
                features,
                lost: features[0] > 0.8 && features[2] > 0.9,
            }
        };
        vec![(0..40_000).map(|_| arrival()).collect()]
    }

    const SETTINGS: Settings = Settings {
        trees: 4,
        depth: 4,
        seed: 1,
    };

    #[test]
    fn a_forest_finds_a_rare_corner() {
        let data = corner();
        let trees = train(&data, SETTINGS).unwrap();
        assert_eq!(trees.len(), 4);
        let forest = Forest::new(&trees, 0.5).unwrap();
        let right = |lost: bool| {
            let of_class = data[0].iter().filter(|arrival| arrival.lost == lost);
            let (mut right, mut all) = (0.0, 0.0);
            for arrival in of_class {
                all += 1.0;
                right += f64::from(forest.predicts_loss(&arrival.features) == lost);
            }
            right / all
        };
        assert!(
            right(true) > 0.9 && right(false) > 0.99,
            "{} {}",
            right(true),
            right(false)
        );
    }

    #[test]
    fn equal_seeds_give_equal_trees() {
        let data = corner();
        let of = |seed| train(&data, Settings { seed, ..SETTINGS }).unwrap();
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
    }

    #[test]
    fn trees_are_no_deeper_than_asked() {
        let data = corner();
        for depth in 1..=4 {
            let trees = train(&data, Settings { depth, ..SETTINGS }).unwrap();
            let deepest = trees.iter().map(|tree| depth_of(tree, 0)).max();
            assert_eq!(deepest, Some(usize::from(depth)));
        }
    }

    fn depth_of(tree: &Tree, node: usize) -> usize {
        if tree.feature[node] == -1 {
            return 0;
        }
        let below = [tree.left[node], tree.right[node]];
        1 + below
            .map(|child| depth_of(tree, child as usize))
            .into_iter()
            .max()
            .unwrap_or(0)
    }

    #[test]
    fn the_share_in_the_root_is_that_of_all_arrivals() {
        let data = corner();
        let lost = data[0].iter().filter(|arrival| arrival.lost).count();
        for tree in train(&data, SETTINGS).unwrap() {
            assert_eq!(tree.lost[0], lost as f32 / 40_000.0);
        }
    }

    #[test]
    fn what_cannot_be_learned_is_refused() {
        let refused = |settings| train(&corner(), settings).unwrap_err().to_string();
        assert!(
            refused(Settings {
                depth: 5,
                ..SETTINGS
            })
            .contains("from 1 to 4")
        );
        assert!(
            refused(Settings {
                trees: 0,
                ..SETTINGS
            })
            .contains("trees")
        );
        let mut kept = corner();
        kept[0].retain(|arrival| !arrival.lost);
        let error = train(&kept, SETTINGS).unwrap_err().to_string();
        assert!(error.contains("lost 0 of"), "{error}");
    }
}
