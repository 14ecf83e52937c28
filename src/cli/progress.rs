//! Progress bars on standard error.

use std::fmt;
use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bufgym::eval;
use bufgym::train::{Progress, Reporter, Step};
use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use super::{Common, say};

/// Returns a progress bar over simulations, hidden with `--quiet`.
pub fn progress_bar(common: &Common) -> ProgressBar {
    styled(common, "{bar:40} {pos}/{len} simulations, {eta} left {msg}")
}

/// Returns a progress bar of this form, hidden with `--quiet`.
pub fn styled(common: &Common, template: &str) -> ProgressBar {
    let bar = match common.quiet {
        true => ProgressBar::hidden(),
        false => ProgressBar::new(0),
    };
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// Returns a callback that advances the bar by a simulation.
pub fn by_simulations(bar: &ProgressBar) -> impl Fn(eval::Progress<'_>) + Sync + '_ {
    |progress| {
        bar.set_length(progress.total as u64);
        bar.inc(1);
    }
}

/// Shows a training: a bar, hidden where standard error is not a terminal, and lines. A quiet one shows only warnings.
#[derive(Debug)]
pub struct TrainingReporter {
    quiet: bool,
    bar: Mutex<ProgressBar>,
}

impl TrainingReporter {
    pub fn new(common: &Common) -> TrainingReporter {
        TrainingReporter {
            quiet: common.quiet,
            bar: Mutex::new(ProgressBar::hidden()),
        }
    }

    fn bar(&self) -> MutexGuard<'_, ProgressBar> {
        self.bar.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reporter for TrainingReporter {
    fn begin(&self, at: Progress) {
        if self.quiet {
            return;
        }
        let left = |state: &ProgressState, out: &mut dyn fmt::Write| {
            let left = Duration::from_secs(state.eta().as_secs());
            let _ = write!(out, "{}", HumanDuration(left));
        };
        let template = "{bar:30} {percent:>3} % · {left} left · {msg}";
        let style = ProgressStyle::with_template(template)
            .unwrap_or_else(|_| ProgressStyle::default_bar())
            .with_key("left", left);
        let bar = ProgressBar::with_draw_target(Some(at.total), ProgressDrawTarget::stderr());
        bar.set_style(style);
        bar.set_position(at.done);
        bar.reset_eta();
        *self.bar() = bar;
    }

    fn advance(&self, at: Progress, step: Step) {
        let message = match step {
            Step::Search { ratio_to_dt } => {
                format!("rule to start from · {ratio_to_dt:.3} × DT on training traces")
            }
            Step::Imitation => String::new(),
            Step::Round {
                decisions_per_s,
                updates_per_s,
                best,
            } => {
                let best = best.map_or(String::new(), |best| format!(" · best {best:.3} × DT"));
                format!("{decisions_per_s:.0} decisions/s · {updates_per_s:.0} updates/s{best}")
            }
        };
        let bar = self.bar();
        bar.set_position(at.done);
        bar.set_message(message);
    }

    fn end(&self) {
        mem::replace(&mut *self.bar(), ProgressBar::hidden()).finish_and_clear();
    }

    fn line(&self, line: &str) {
        if !self.quiet {
            self.bar().suspend(|| say(line));
        }
    }

    fn warning(&self, line: &str) {
        self.bar().suspend(|| say(format_args!("warning: {line}")));
    }
}
