//! Fig. 14: throughput against false predictions, in the slotted model of the theory. The paper does not
//! state ports, buffer or rate of the bursts, so several values are tried.

use bufgym_eval::figures::plot::{Curve, Plot, extent_y};
use bufgym_eval::figures::{Figure, FigureError};
use bufgym_eval::format;
use bufgym_eval::stats::Estimate;
use bufgym_slotted::sweep::{Figure14, figure14};
use bufgym_slotted::{
    Arrivals, Generator, GeneratorOptions, Order, PolicySpec, SlottedError, Switch,
};
use rayon::prelude::*;

use crate::Scale;
use crate::claim::{Claim, Target};
use crate::fabric::FabricConfig;
use crate::report::{Panel, Table};
use crate::runs::PapersError;
use crate::sweep::stroke;

/// Numbers of ports.
const PORTS: [u32; 3] = [8, 16, 32];
/// Bursts per `B` slots, for a buffer of `B` packets.
const RATES: [f64; 5] = [0.5, 0.75, 1.0, 1.5, 2.0];
/// Packets of the buffer for each port.
const PER_PORT: u64 = 10;
/// Steps of the flip probability from 0 to 1.
const STEPS: u32 = 20;
/// Dynamic Threshold with the α of the paper's other figures.
pub const DT: PolicySpec = PolicySpec::DynamicThreshold { alpha: 0.5 };
/// The paper's ratio if all predictions are false, and the least probability up to which Credence is better
/// than DT.
const AT_THE_END: f64 = 2.9;
const BETTER_UP_TO: f64 = 0.7;
/// Share by which a plausible setting may differ from the paper's ratio.
const NEAR: f64 = 0.25;

/// A setting and its result.
struct Setting {
    ports: u32,
    rate: f64,
    result: Figure14,
}

impl Setting {
    fn name(&self) -> String {
        format!("{} ports, {} bursts per B slots", self.ports, self.rate)
    }

    /// Returns LQD over Credence without false predictions, and with false predictions only.
    fn ends(&self) -> Option<(f64, f64)> {
        let (first, last) = (self.result.credence.first()?, self.result.credence.last()?);
        Some((first.ratio, last.ratio))
    }

    /// Returns the largest probability up to which Credence is better than DT everywhere.
    fn crossing(&self) -> f64 {
        let better = self.result.credence.iter();
        let better = better.take_while(|point| point.ratio < self.result.dt);
        better.last().map_or(0.0, |point| point.flip)
    }

    /// Returns the distance from the paper's ratio, as a share.
    fn distance(&self) -> f64 {
        let last = self.ends().map_or(f64::INFINITY, |(_, last)| last);
        (last / AT_THE_END - 1.0).abs()
    }

    /// Returns true if the result resembles the paper's figure.
    fn is_near(&self) -> bool {
        self.distance() <= NEAR && self.crossing() >= BETTER_UP_TO
    }
}

/// Makes the figure.
///
/// # Errors
/// Fails if the figure cannot be drawn.
pub fn figure(config: &FabricConfig) -> Result<Vec<(Panel, Vec<Claim>)>, PapersError> {
    let rounds = match config.scale {
        Scale::Quick => 1_000,
        Scale::Paper => 5_000,
    };
    let settings: Vec<(u32, f64)> = PORTS
        .iter()
        .flat_map(|ports| RATES.map(|rate| (*ports, rate)))
        .collect();
    let run = |&(ports, rate): &(u32, f64)| run(ports, rate, rounds, config.seed);
    let settings: Vec<Setting> = settings.par_iter().map(run).collect::<Result<_, _>>()?;
    let claims = claims(&settings);
    let panel = Panel {
        id: "14",
        title: "throughput of LQD relative to Credence over false predictions",
        method: format!(
            "Slotted model: bursts of B packets for random ports as a Poisson process, {rounds} bursts, B = \
             {PER_PORT} packets per port, DT with α 0.5. Ports and rates are ours; the drawing has the \
             setting that is nearest to the paper’s."
        ),
        tables: vec![table(&settings)],
        drawings: nearest(&settings)
            .map(|setting| {
                let (result, description) = (&setting.result, described(&setting.name()));
                drawing(result, description, &[("CS", result.cs)])
            })
            .transpose()?
            .into_iter()
            .collect(),
    };
    Ok(vec![(panel, claims)])
}

fn run(ports: u32, rate: f64, rounds: u64, seed: u64) -> Result<Setting, PapersError> {
    let buffer = PER_PORT * u64::from(ports);
    let switch = Switch::new(ports, buffer, Order::Pq)?;
    let options = GeneratorOptions {
        burst_rate: Some(rate / buffer as f64),
        seed,
        ..GeneratorOptions::default()
    };
    let arrivals = Generator::PoissonBursts.arrivals(&switch, rounds, &options)?;
    Ok(Setting {
        ports,
        rate,
        result: over_flips(&switch, &arrivals, seed)?,
    })
}

/// Runs the policies of the figure on the same arrivals, Credence with flip probabilities from 0 to 1.
///
/// # Errors
/// Returns the errors of [`figure14`].
pub fn over_flips(
    switch: &Switch,
    arrivals: &Arrivals,
    seed: u64,
) -> Result<Figure14, SlottedError> {
    let flips: Vec<f64> = (0..=STEPS)
        .map(|step| f64::from(step) / f64::from(STEPS))
        .collect();
    figure14(switch, arrivals, DT, &flips, seed)
}

/// Returns the nearest among the settings that resemble the paper's figure, or among all if none does.
fn nearest(settings: &[Setting]) -> Option<&Setting> {
    settings.iter().min_by(|a, b| {
        let key = |setting: &Setting| (!setting.is_near(), setting.distance());
        let (a, b) = (key(a), key(b));
        a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
    })
}

fn claims(settings: &[Setting]) -> Vec<Claim> {
    let farthest = settings.iter().filter_map(|setting| {
        let (first, _) = setting.ends()?;
        Some((first - 1.0).abs())
    });
    let farthest = farthest.fold(0.0, f64::max);
    let best = nearest(settings);
    let near = settings.iter().filter(|setting| setting.is_near()).count();
    let remark = best.map_or_else(String::new, |best| {
        format!(
            "With {}; {near} of {} settings are within 25 % of 2.9 and cross DT above 0.7.",
            best.name(),
            settings.len()
        )
    });
    let claim = |series: &str, metric, statement, paper| {
        Claim::number(("14", ""), series, metric, statement, paper)
    };
    vec![
        claim(
            "Credence",
            "LQD/Credence, largest distance from 1",
            "Without false predictions Credence has LQD’s throughput.",
            Target::AtMost(0.0),
        )
        .at("p = 0")
        .measured(Some(Estimate::exact(farthest)))
        .remarked("In all settings."),
        claim(
            "Credence",
            "LQD/Credence",
            "With false predictions only the ratio is 2.9.",
            Target::Value(AT_THE_END),
        )
        .at("p = 1")
        .measured(
            best.and_then(Setting::ends)
                .map(|(_, last)| Estimate::exact(last)),
        )
        .remarked(remark.clone()),
        claim(
            "Credence",
            "flip probability up to which Credence is better than DT",
            "Credence is better than DT even at 0.7.",
            Target::AtLeast(BETTER_UP_TO),
        )
        .measured(best.map(|best| Estimate::exact(best.crossing())))
        .remarked(remark),
    ]
}

fn table(settings: &[Setting]) -> Table {
    let rows = settings.iter().flat_map(|setting| {
        let points = setting.result.credence.iter();
        points.map(move |point| (setting, point))
    });
    Table::of("fig14", rows)
        .text("ports", |(setting, _)| setting.ports.to_string())
        .text("bursts_per_b_slots", |(setting, _)| {
            setting.rate.to_string()
        })
        .text("flip", |(_, point)| point.flip.to_string())
        .text("credence", |(_, point)| point.ratio.to_string())
        .text("eta", |(_, point)| point.eta.to_string())
        .text("dt", |(setting, _)| setting.result.dt.to_string())
        .text("cs", |(setting, _)| setting.result.cs.to_string())
        .table()
}

pub(super) fn described(setting: &str) -> String {
    format!("{setting}; 1 is as good as LQD.")
}

/// Draws LQD's throughput over that of Credence, of DT and of policies that the paper does not have.
pub(super) fn drawing(
    result: &Figure14,
    description: String,
    added: &[(&str, f64)],
) -> Result<Figure, FigureError> {
    let credence = result.credence.iter();
    let credence = credence.map(|point| (point.flip, point.ratio));
    let level = |value: f64| [(0.0, value), (1.0, value)];
    let mut curves = vec![
        Curve::new("Credence", stroke(0, false), credence),
        Curve::new("DT", stroke(1, false), level(result.dt)),
    ];
    for (name, value) in added {
        let stroke = stroke(curves.len(), true);
        curves.push(Curve::new(
            &format!("{name} (added)"),
            stroke,
            level(*value),
        ));
    }
    let (_, most) = extent_y(&curves).unwrap_or((1.0, 1.0));
    let plot = Plot {
        name: "fig14",
        title: "Throughput of LQD over that of each policy",
        description,
        curves: &curves,
        x: 0.0..1.0,
        x_label: "probability of a false prediction".to_owned(),
        x_tick: format::tick,
        y: 0.9..1.05 * most,
        y_label: "LQD / policy",
        level: Some(1.0),
    };
    plot.draw()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::Grade;

    #[test]
    fn without_false_predictions_credence_is_as_good_as_lqd() {
        let setting = run(8, 0.75, 200, 1).unwrap();
        let claims = claims(&[setting]);
        assert_eq!(claims[0].grade(), Grade::Agrees);
        assert!(claims[0].ours.unwrap().value().abs() < 1e-12);
        assert!(
            claims[1]
                .remark
                .starts_with("With 8 ports, 0.75 bursts per B slots; ")
        );
    }
}
