//! Decision trees, and their form for fast evaluation: complete and flat, without branches.

use super::features::{FEATURES, Features};
use thiserror::Error;

/// Largest number of splits between the root of a tree and a leaf (§3.4 of the paper).
pub const MAX_DEPTH: usize = 4;

/// Largest number of trees in a forest.
pub const MAX_TREES: usize = 256;

const SPLITS: usize = (1 << MAX_DEPTH) - 1;
const LEAVES: usize = 1 << MAX_DEPTH;

/// A decision tree as arrays with an entry for each node; node 0 is the root, and children follow
/// their parents.
#[derive(Clone, PartialEq, Default, Debug, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tree {
    /// The feature that a node compares; -1 for a leaf.
    pub feature: Vec<i64>,
    /// Up to this value the left child is next, above it the right child; 0 for a leaf.
    pub split: Vec<f32>,
    /// The left child; -1 for a leaf.
    pub left: Vec<i64>,
    /// The right child; -1 for a leaf.
    pub right: Vec<i64>,
    /// Fraction of lost arrivals among the training data that reached the node.
    pub lost: Vec<f32>,
}

impl Tree {
    /// Returns the number of splits between the root and the deepest leaf.
    pub fn depth(&self) -> usize {
        let mut depths = vec![0; self.feature.len()];
        for node in 0..depths.len() {
            let below = depths[node] + 1;
            for child in [self.left.get(node), self.right.get(node)] {
                let child = child.and_then(|child| usize::try_from(*child).ok());
                if let Some(depth) = child.and_then(|child| depths.get_mut(child)) {
                    *depth = below;
                }
            }
        }
        depths.into_iter().max().unwrap_or(0)
    }
}

/// A tree that cannot be used.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum ForestError {
    /// The forest has no trees, or too many.
    #[error("it has {0} trees; needs 1 to {MAX_TREES}")]
    Trees(usize),
    /// The arrays differ in length or are empty.
    #[error("tree {0}: the arrays must have the same length, above 0")]
    Lengths(usize),
    /// The entries of a node are invalid.
    #[error("tree {tree}, node {node}: {problem}")]
    Node {
        /// Index of the tree.
        tree: usize,
        /// Index of the node.
        node: usize,
        /// The problem with the node.
        problem: &'static str,
    },
    /// A leaf lies too deep.
    #[error("tree {0} is deeper than {MAX_DEPTH} splits")]
    Depth(usize),
}

/// One split of a complete tree.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
struct Split {
    feature: u32,
    value: f32,
}

/// A complete tree of [`MAX_DEPTH`] splits. The children of split `i` are `2i + 1` and `2i + 2`.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
struct Compiled {
    splits: [Split; SPLITS],
    lost: [f32; LEAVES],
}

impl Compiled {
    #[inline]
    fn lost(&self, features: &Features) -> f32 {
        let mut at = 0;
        for _ in 0..MAX_DEPTH {
            let split = self.splits[at];
            // The mask avoids a bounds check.
            let right = features[split.feature as usize & 3] > split.value;
            at = 2 * at + 1 + usize::from(right);
        }
        self.lost[at - SPLITS]
    }
}

/// A random forest. The vote of a tree is the fraction of lost arrivals in the leaf that it
/// reaches.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct Forest {
    trees: Box<[Compiled]>,
    /// A loss is predicted if the sum of the votes is at least this.
    limit: f32,
}

impl Forest {
    /// Builds the forest from trees. It predicts a loss if the mean of the votes is at least
    /// `threshold`.
    ///
    /// # Errors
    /// When a tree is damaged or too deep.
    pub fn new(trees: &[Tree], threshold: f32) -> Result<Forest, ForestError> {
        if trees.is_empty() || trees.len() > MAX_TREES {
            return Err(ForestError::Trees(trees.len()));
        }
        let compiled = trees.iter().enumerate().map(|(index, tree)| {
            check(tree, index)?;
            let mut compiled = Compiled {
                splits: [Split {
                    feature: 0,
                    value: f32::INFINITY,
                }; SPLITS],
                lost: [0.0; LEAVES],
            };
            compile(tree, index, 0, 0, 0, &mut compiled)?;
            Ok(compiled)
        });
        Ok(Forest {
            trees: compiled.collect::<Result<_, _>>()?,
            limit: threshold * trees.len() as f32,
        })
    }

    /// Returns true if an arrival with these features is expected to be lost.
    #[inline]
    pub fn predicts_loss(&self, features: &Features) -> bool {
        self.votes(features) >= self.limit
    }

    /// Returns the sum of the votes of all trees.
    #[inline]
    pub fn votes(&self, features: &Features) -> f32 {
        self.trees.iter().map(|tree| tree.lost(features)).sum()
    }

    /// Returns the number of trees.
    pub fn len(&self) -> usize {
        self.trees.len()
    }

    /// Always false: a forest has at least one tree.
    pub fn is_empty(&self) -> bool {
        self.trees.is_empty()
    }
}

fn check(tree: &Tree, index: usize) -> Result<(), ForestError> {
    let nodes = tree.feature.len();
    let lengths = [
        tree.split.len(),
        tree.left.len(),
        tree.right.len(),
        tree.lost.len(),
    ];
    if nodes == 0 || lengths.iter().any(|length| *length != nodes) {
        return Err(ForestError::Lengths(index));
    }
    for node in 0..nodes {
        let problem = if !(0.0..=1.0).contains(&tree.lost[node]) {
            "the share lost is not a number from 0 to 1"
        } else if tree.feature[node] == -1 {
            continue;
        } else if feature(tree, node).is_none() {
            "there is no such feature"
        } else if !tree.split[node].is_finite() {
            "the split is not finite"
        } else if children(tree, node).is_none() {
            "a child does not follow it"
        } else {
            continue;
        };
        return Err(ForestError::Node {
            tree: index,
            node,
            problem,
        });
    }
    Ok(())
}

/// Returns the feature that a node tests, if there is such a feature.
fn feature(tree: &Tree, node: usize) -> Option<u32> {
    let feature = u32::try_from(tree.feature[node]).ok()?;
    ((feature as usize) < FEATURES.len()).then_some(feature)
}

/// Returns the children of a node, if they are nodes that follow it.
fn children(tree: &Tree, node: usize) -> Option<(usize, usize)> {
    let child = |child: i64| {
        let child = usize::try_from(child).ok()?;
        (node + 1..tree.feature.len())
            .contains(&child)
            .then_some(child)
    };
    Some((child(tree.left[node])?, child(tree.right[node])?))
}

/// Copies the tree below `node` of a checked tree to position `place` of the complete tree.
fn compile(
    tree: &Tree,
    index: usize,
    node: usize,
    depth: usize,
    place: usize,
    into: &mut Compiled,
) -> Result<(), ForestError> {
    let leaf = tree.feature[node] == -1;
    if depth == MAX_DEPTH {
        if !leaf {
            return Err(ForestError::Depth(index));
        }
        into.lost[place - SPLITS] = tree.lost[node];
        return Ok(());
    }
    let (left, right) = if leaf {
        // Both branches lead to the same leaf.
        (node, node)
    } else {
        into.splits[place] = Split {
            feature: feature(tree, node).expect("the tree is checked"),
            value: tree.split[node],
        };
        children(tree, node).expect("the tree is checked")
    };
    compile(tree, index, left, depth + 1, 2 * place + 1, into)?;
    compile(tree, index, right, depth + 1, 2 * place + 2, into)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a tree that predicts a loss above a quarter of the buffer in the queue, or if the buffer
    /// is nearly full.
    fn tree() -> Tree {
        Tree {
            feature: vec![0, 2, -1, -1, -1],
            split: vec![0.25, 0.9, 0.0, 0.0, 0.0],
            left: vec![1, 3, -1, -1, -1],
            right: vec![2, 4, -1, -1, -1],
            lost: vec![0.2, 0.1, 1.0, 0.0, 0.75],
        }
    }

    #[test]
    fn a_compiled_tree_answers_as_the_arrays_say() {
        let forest = Forest::new(&[tree()], 0.5).unwrap();
        for (features, lost) in [
            ([0.25, 0.0, 0.9, 0.0], false),
            ([0.26, 0.0, 0.1, 0.0], true),
            ([0.0, 0.0, 0.91, 0.0], true),
            ([0.0, 1.0, 0.0, 1.0], false),
        ] {
            assert_eq!(forest.predicts_loss(&features), lost, "{features:?}");
        }
        let strict = Forest::new(&[tree()], 0.8).unwrap();
        assert!(!strict.predicts_loss(&[0.0, 0.0, 0.91, 0.0]));
    }

    #[test]
    fn the_depth_is_that_of_the_deepest_leaf() {
        assert_eq!(tree().depth(), 2);
        assert_eq!(Tree::default().depth(), 0);
    }

    #[test]
    fn trees_vote_together() {
        let keep = Tree {
            feature: vec![-1],
            split: vec![0.0],
            left: vec![-1],
            right: vec![-1],
            lost: vec![0.0],
        };
        let features = [0.5, 0.0, 0.0, 0.0];
        let of = |trees: &[Tree]| Forest::new(trees, 0.5).unwrap().predicts_loss(&features);
        assert!(of(&[tree(), keep.clone()]), "1 and 0 are 0.5 on average");
        assert!(!of(&[tree(), keep.clone(), keep]));
    }

    #[test]
    fn damaged_trees_are_refused() {
        let broken = |damage: fn(&mut Tree)| {
            let mut tree = tree();
            damage(&mut tree);
            Forest::new(&[tree], 0.5).unwrap_err().to_string()
        };
        assert!(broken(|tree| tree.left[0] = 9).contains("child"));
        // These would be valid nodes and features if they were truncated to 32 bits.
        assert!(broken(|tree| tree.left[0] = (1 << 32) + 1).contains("child"));
        assert!(broken(|tree| tree.right[0] = i64::MIN + 2).contains("child"));
        assert!(broken(|tree| tree.feature[0] = 1 << 32).contains("feature"));
        assert!(broken(|tree| tree.feature[0] = -2).contains("feature"));
        assert!(broken(|tree| tree.right[1] = 0).contains("child"));
        assert!(broken(|tree| tree.feature[0] = 4).contains("feature"));
        assert!(broken(|tree| tree.split[0] = f32::NAN).contains("finite"));
        assert!(broken(|tree| tree.lost[3] = 1.5).contains("share"));
        assert!(broken(|tree| tree.split.truncate(2)).contains("length"));
        assert!(Forest::new(&[], 0.5).is_err());
    }

    #[test]
    fn a_tree_of_five_splits_is_too_deep() {
        let deep = |splits: i64| {
            let nodes = 2 * splits + 1;
            let inner = |node: i64| node % 2 == 0 && node < 2 * splits;
            let column = |value: fn(i64) -> i64| {
                let of = |node| if inner(node) { value(node) } else { -1 };
                (0..nodes).map(of).collect::<Vec<i64>>()
            };
            Tree {
                feature: column(|_| 0),
                split: vec![0.5; nodes as usize],
                left: column(|node| node + 1),
                right: column(|node| node + 2),
                lost: vec![0.5; nodes as usize],
            }
        };
        assert!(Forest::new(&[deep(4)], 0.5).is_ok());
        assert_eq!(
            Forest::new(&[deep(5)], 0.5).unwrap_err(),
            ForestError::Depth(0)
        );
    }
}
