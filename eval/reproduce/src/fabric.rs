//! Configuration of the figures of papers about networks of several switches.

use super::Scale;
use super::grid::{Forests, LEARNED, Learned};
use super::sweep::Series;

/// Configuration of a paper's figures.
#[derive(Clone, Debug)]
pub struct FabricConfig {
    /// Amount of simulation.
    pub scale: Scale,
    /// Seed of the experiment.
    pub seed: u64,
    /// Number of simulations of every point, instead of the scale's.
    pub seeds: Option<u64>,
    /// `KEY=VALUE` for every network, after the settings of the scale and before those of the figure.
    pub settings: Vec<String>,
    /// Numbers of the figures to make; all if empty.
    pub figures: Vec<String>,
    /// Forests of Credence; without them it uses the one that comes with the program.
    pub forests: Option<Forests>,
    /// A learned policy, which is then an additional series of the figures that compare policies.
    pub learned: Option<Learned>,
    /// Revision of the program.
    pub revision: String,
}

impl FabricConfig {
    /// Builds a configuration for all figures at a scale.
    pub fn new(scale: Scale, seed: u64) -> FabricConfig {
        FabricConfig {
            scale,
            seed,
            seeds: None,
            settings: Vec::new(),
            figures: Vec::new(),
            forests: None,
            learned: None,
            revision: String::new(),
        }
    }

    /// Returns the number of simulations of every point.
    pub fn seeds(&self) -> u64 {
        self.seeds.unwrap_or(match self.scale {
            Scale::Quick => 2,
            Scale::Paper => 5,
        })
    }

    /// Describes the differences from the scale of this name: `in_scale` is the scale in words.
    pub(crate) fn extent(&self, in_scale: &str) -> String {
        let mut changes = self.settings.clone();
        changes.extend(self.seeds.map(in_words));
        match changes.as_slice() {
            [] => in_scale.to_owned(),
            changes => format!(
                "scale “{}” changed by {}; the scale itself: {in_scale}",
                self.scale,
                changes.join(", ")
            ),
        }
    }
}

/// Formats a number of seeds in words.
pub(crate) fn in_words(seeds: u64) -> String {
    match seeds {
        1 => "one seed".to_owned(),
        seeds => format!("{seeds} seeds"),
    }
}

/// Returns the series that every figure has besides the paper's: the unlimited buffer, Dynamic Threshold with
/// the best static α, and the learned policy if there is one.
pub fn additions(config: &FabricConfig, alpha: &str) -> Vec<Series> {
    let best = format!("DT, best α = {alpha}");
    let mut added = vec![
        Series::new("unlimited", "unlimited"),
        Series::new(&best, &format!("dt:alpha={alpha}")),
    ];
    added.extend(learned(config));
    added.into_iter().map(Series::as_addition).collect()
}

/// Returns the series of the learned policy, if there is one.
pub fn learned(config: &FabricConfig) -> Option<Series> {
    let learned = config.learned.as_ref()?;
    Some(Series::new(learned.entrant.name(), LEARNED))
}
