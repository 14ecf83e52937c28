//! Papers about networks of several switches.

mod options;

use std::time::Instant;

use bufgym_eval::data::ScenarioFacts;
use bufgym_eval::result_cache::ResultCache;
use bufgym_sim::scenario::Scenario;
use bufgym_util::input::excerpt;

use super::claim::Claim;
use super::fabric::FabricConfig;
use super::figure::{self, About, Additions, Figure, FigurePlan, PanelFile};
use super::grid::{Common, Grid, GridPlan};
use super::report::{Panel, Report};
use super::runs::{PapersError, Work};
use super::sweep::{Metric, Point, Series, Sweep};
use super::variants::{self, Variant};
use super::verdict::Grade;
use super::{Scale, abm, credence, reverie};

/// Values of α from which the best static one is chosen.
const ALPHAS: [&str; 7] = ["0.5", "1", "2", "4", "8", "16", "64"];

/// A figure that needs no simulation of a network: its panels with their claims.
type Computed = fn(&FabricConfig) -> Result<Vec<(Panel, Vec<Claim>)>, PapersError>;

/// Paper, number and figure of all that no file describes: they follow from formulas.
const CODED: &[(&str, &str, Computed)] = &[
    ("abm", "4", abm::analysis::figure),
    ("abm", "5", abm::burst::figure),
    ("credence", "14", credence::slotted::figure),
    ("reverie", "4", reverie::pools::ratio),
    ("reverie", "5", reverie::pools::thresholds),
];

/// A paper, described by one of the files of its figures.
#[derive(Clone, Copy, Debug)]
pub struct Paper {
    /// Name in files and on the command line.
    pub name: &'static str,
    /// The figure whose file describes the paper.
    first: &'static Figure,
    about: &'static About,
}

/// A text that names no figure of a paper.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is no figure of this paper that can be made: {}", excerpt(.given), .known.join(", "))]
pub struct UnknownFigure {
    /// The text.
    pub given: String,
    /// The known figures.
    pub known: Vec<&'static str>,
}

impl Paper {
    /// Returns all papers, by name.
    pub fn all() -> impl Iterator<Item = Paper> {
        figure::all().filter_map(|(name, _, first)| {
            let about = first.paper.as_ref()?;
            Some(Paper { name, first, about })
        })
    }

    /// Returns the paper with this name, if there is one.
    pub fn named(name: &str) -> Option<Paper> {
        Paper::all().find(|paper| paper.name == name)
    }

    /// Returns the title with the conference.
    pub fn title(&self) -> &'static str {
        &self.about.title
    }

    /// Returns the preset of the networks.
    pub fn preset(&self) -> &'static str {
        &self.first.preset
    }

    /// Returns true if some figure has Credence as a series, whose forests can be given.
    pub fn has_forests(&self) -> bool {
        self.described()
            .any(|(_, figure)| figure.has_policy("credence"))
    }

    /// Returns true if a learned policy can be a series of some figure.
    pub fn takes_learned(&self) -> bool {
        self.described()
            .any(|(_, figure)| figure.additions.is_some())
    }

    /// Returns number and figure of the files.
    fn described(self) -> impl Iterator<Item = (&'static str, &'static Figure)> {
        let own = figure::all().filter(move |(name, ..)| *name == self.name);
        own.map(|(_, number, figure)| (number, figure))
    }

    /// Returns number and figure of those without a file.
    fn coded(self) -> impl Iterator<Item = (&'static str, Computed)> {
        let own = CODED.iter().filter(move |(name, ..)| *name == self.name);
        own.map(|(_, number, figure)| (*number, *figure))
    }

    /// Returns the numbers of the figures that can be made, in the order of the paper.
    pub fn figures(&self) -> Vec<&'static str> {
        let coded = self.coded().map(|(number, _)| number);
        let described = self.described().map(|(number, _)| number);
        let mut all: Vec<&str> = described.chain(coded).collect();
        all.sort_by_key(|number| number.parse::<u32>().unwrap_or(u32::MAX));
        all
    }

    /// Returns a figure over simulations, if the number is one. `alpha` is the best static α.
    fn planned(&self, number: &str, config: &FabricConfig, alpha: &str) -> Option<FigurePlan> {
        let (_, figure) = self.described().find(|(of, _)| *of == number)?;
        Some(figure.plan(config, alpha))
    }

    /// Returns the number of a figure, given with or without its panel: `6` and `6a` are Fig. 6.
    ///
    /// # Errors
    /// Fails if there is no such figure.
    pub fn figure(&self, text: &str) -> Result<String, UnknownFigure> {
        let lower = text.to_ascii_lowercase();
        let panels = self.described().flat_map(|(_, figure)| figure.letters());
        let letters: Vec<&str> = panels.chain([""]).collect();
        let is_it = |number: &&str| {
            let panel = lower.strip_prefix(&number.to_ascii_lowercase());
            panel.is_some_and(|panel| letters.contains(&panel))
        };
        let known = self.figures();
        match known.iter().copied().find(is_it) {
            Some(number) => Ok(number.to_owned()),
            None => Err(UnknownFigure {
                given: text.to_owned(),
                known,
            }),
        }
    }

    /// Makes the figures. Apart from wall times, the result is the same for the same configuration, whatever
    /// the number of threads and whoever runs the simulations. With `parts`, finished simulations are stored
    /// there until the figures are made, and stored ones are not run again.
    ///
    /// # Errors
    /// Fails if a simulation fails, a result cannot be stored, or a figure cannot be drawn.
    pub fn make(
        &self,
        config: &FabricConfig,
        parts: Option<&ResultCache>,
        work: &Work<'_>,
    ) -> Result<Report, PapersError> {
        let start = Instant::now();
        let mut report = self.empty(config)?;
        let mut wanted = self.figures();
        wanted.retain(|number| wants(config, number));
        let mut described = self.described();
        let has_best = described.any(|(number, figure)| {
            wanted.contains(&number) && figure.additions == Some(Additions::All)
        });
        let alpha = match has_best {
            true => self.best_static(config, parts, work)?,
            false => ALPHAS[0],
        };
        let plans: Vec<FigurePlan> = wanted
            .iter()
            .filter_map(|number| self.planned(number, config, alpha))
            .collect();
        let grid = self.simulate(config, &plans, parts, work)?;
        for number in wanted {
            for (_, computed) in self.coded().filter(|(coded, _)| *coded == number) {
                for (panel, claims) in computed(config)? {
                    report.panels.push(panel);
                    report.claims.extend(claims);
                }
            }
            for plan in plans.iter().filter(|plan| plan.sweep.figure == number) {
                let claims = self.judged(config, plan, &grid, parts, work)?;
                report.claims.extend(claims);
                report.panels.extend(panels(plan, &grid)?);
            }
        }
        if grid.unfinished() > 0 {
            report.notes.push(format!(
                "{} flows did not finish; percentiles count them as slower than any other.",
                grid.unfinished()
            ));
        }
        report.wall_s = start.elapsed().as_secs_f64();
        Ok(report)
    }

    fn empty(&self, config: &FabricConfig) -> Result<Report, PapersError> {
        let mut scenario = Scenario::preset(self.preset())?;
        scenario.set_all(self.all_settings(config))?;
        scenario.validate()?;
        let seeds = config.seeds();
        let mut notes = Vec::new();
        if self.has_forests() {
            notes.push(match &config.forests {
                Some(forests) => format!("Credence’s oracle: {}.", forests.origin),
                None => "Credence’s oracle is the forest that comes with the program, of a single switch with \
                         other traffic, at leaves and spines alike; `--model` takes forests of such a network."
                    .to_owned(),
            });
        }
        notes.extend(self.about.notes.iter().cloned());
        if config.scale == Scale::Quick {
            notes.push(
                "What differs was not run again with other options of the setting: that is done at \
                 --scale paper."
                    .to_owned(),
            );
        }
        notes.extend(config.learned.as_ref().map(|learned| {
            let entry = learned.entrant.entry();
            format!(
                "{} decides at every switch: {}.",
                entry.policy, entry.origin
            )
        }));
        Ok(Report {
            paper: self.name,
            title: self.title(),
            scale: config.scale.to_string(),
            seeds,
            seed: config.seed,
            extent: config.extent(&self.about.amount(config.scale).extent),
            intervals: match seeds {
                1 => "One seed, so that no value has an interval unless a figure says otherwise."
                    .to_owned(),
                seeds => format!(
                    "Values are medians over the seeds, of which there are {seeds} unless a figure says \
                     otherwise; ranges are from the least to the largest and are no confidence intervals."
                ),
            },
            notes,
            panels: Vec::new(),
            claims: Vec::new(),
            scenarios: vec![ScenarioFacts::of(&scenario)],
            software: concat!("bufgym ", env!("CARGO_PKG_VERSION")).to_owned(),
            wall_s: 0.0,
        })
    }

    /// Returns the settings of the paper, of the scale, and of the user, in this order.
    fn all_settings(&self, config: &FabricConfig) -> Vec<String> {
        let of_scale = &self.about.amount(config.scale).settings;
        let all = [&self.about.settings, of_scale, &config.settings];
        all.into_iter().flatten().cloned().collect()
    }

    /// Returns the options that are tried if a claim differs.
    fn options(&self) -> &'static [Variant] {
        match Scenario::preset(self.preset()).is_ok_and(|scenario| scenario.has_lossless()) {
            true => options::LOSSLESS,
            false => options::OPTIONS,
        }
    }

    fn common(&self, config: &FabricConfig, training: bool) -> Common {
        Common {
            settings: self.all_settings(config),
            seed: config.seed,
            training,
            forests: config.forests.clone(),
            learned: config.learned.clone(),
            revision: config.revision.clone(),
        }
    }

    fn simulate(
        &self,
        config: &FabricConfig,
        plans: &[FigurePlan],
        parts: Option<&ResultCache>,
        work: &Work,
    ) -> Result<Grid, PapersError> {
        let mut plan = GridPlan::new(self.common(config, false));
        for figure in plans {
            figure.sweep.want(&mut plan);
        }
        plan.run(parts, work)
    }

    /// Returns the α of Dynamic Threshold with the lowest mean slowdown of in-cast flows, in one training
    /// trace of the paper's network. It is never chosen on the traces of the figures.
    fn best_static(
        &self,
        config: &FabricConfig,
        parts: Option<&ResultCache>,
        work: &Work,
    ) -> Result<&'static str, PapersError> {
        let mut plan = GridPlan::new(self.common(config, true));
        let sweep = Sweep {
            figure: "",
            preset: self.preset(),
            settings: Vec::new(),
            series: ALPHAS
                .iter()
                .map(|alpha| Series::new(alpha, &format!("dt:alpha={alpha}")))
                .collect(),
            points: vec![Point::new(0.0, "", &[])],
            x_label: "",
            seeds: 1,
            changes: Vec::new(),
        };
        sweep.want(&mut plan);
        let grid = plan.run(parts, work)?;
        let swept = sweep.measured(&grid);
        let mean = |series: &Series| {
            let measured = swept.of(series, &sweep.points[0]).first();
            measured
                .and_then(|one| one.incast.mean)
                .unwrap_or(f64::INFINITY)
        };
        let means: Vec<f64> = sweep.series.iter().map(mean).collect();
        let best = (0..ALPHAS.len()).min_by(|a, b| means[*a].total_cmp(&means[*b]));
        Ok(ALPHAS[best.unwrap_or(0)])
    }

    /// Returns the claims of a figure. At the scale of the paper, claims that differ are measured again with
    /// each option in turn, one simulation for each of the relevant points.
    fn judged(
        &self,
        config: &FabricConfig,
        plan: &FigurePlan,
        grid: &Grid,
        parts: Option<&ResultCache>,
        work: &Work,
    ) -> Result<Vec<Claim>, PapersError> {
        let mut claims = plan.claims(&plan.sweep.measured(grid));
        let options: &[Variant] = match config.scale {
            Scale::Quick => &[],
            Scale::Paper => self.options(),
        };
        let matters = open_points(plan, &claims);
        variants::explain(&mut claims, options, |option| {
            let number = plan.sweep.figure;
            let Some(mut again) = self.planned(number, config, ALPHAS[0]) else {
                return Ok(Vec::new());
            };
            again.sweep.series.retain(|series| !series.added);
            again.sweep.change(option.settings);
            again.sweep.seeds = 1;
            let mut simulations = GridPlan::new(self.common(config, false));
            again
                .sweep
                .want_at(&mut simulations, |point| matters.contains(&point.label));
            let grid = simulations.run(parts, work)?;
            Ok(plan.claims(&again.sweep.measured(&grid)))
        })?;
        Ok(claims)
    }
}

/// Returns the labels of the points of the claims that differ: all points if one of them is about several.
fn open_points(plan: &FigurePlan, claims: &[Claim]) -> Vec<String> {
    let labels = plan.sweep.points.iter().map(|point| point.label.clone());
    let labels: Vec<String> = labels.collect();
    let differing = claims
        .iter()
        .filter(|claim| claim.grade() == Grade::Differs);
    let open: Vec<String> = differing.map(|claim| claim.x.clone()).collect();
    match open.iter().all(|x| labels.contains(x)) {
        true => open,
        false => labels,
    }
}

fn wants(config: &FabricConfig, number: &str) -> bool {
    config.figures.is_empty() || config.figures.iter().any(|wanted| wanted == number)
}

/// Draws the panels of a figure over simulations.
fn panels(plan: &FigurePlan, grid: &Grid) -> Result<Vec<Panel>, PapersError> {
    let swept = plan.sweep.measured(grid);
    let mut method = plan.method.clone();
    for line in swept.left_out() {
        method.push_str(&format!(" {line}."));
    }
    if swept.unfinished() > 0 {
        method.push_str(&format!(" {} flows did not finish.", swept.unfinished()));
    }
    if let Some(lost) = swept.lossless_drops() {
        method.push_str(&match lost {
            0 => " No lossless packet was lost.".to_owned(),
            lost => format!(" {lost} lossless packets were lost."),
        });
    }
    let shown: Vec<Metric> = plan
        .figure
        .panels
        .iter()
        .map(|panel| panel.metric)
        .collect();
    let panels = plan.figure.panels.iter().enumerate();
    let panel = |(place, panel): (usize, &'static PanelFile)| {
        let drawing = swept.drawing(&format!("fig{}", panel.id), panel.metric)?;
        let by_seed = swept.by_seed(&panel.id, panel.metric);
        Ok(Panel {
            id: &panel.id,
            title: &panel.title,
            method: match place {
                0 => method.clone(),
                _ => format!("As panel {}.", plan.figure.panels[0].id),
            },
            tables: match place {
                0 => vec![swept.table(plan.figure.tail, &shown), by_seed],
                _ => vec![by_seed],
            },
            drawings: drawing.into_iter().collect(),
        })
    };
    panels.map(panel).collect()
}

#[cfg(test)]
mod tests;
