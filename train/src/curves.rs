//! The tables and training curves of a run folder.

use std::path::Path;

use crate::console::Console;
use crate::events::{EventFile, Events, HyperParameter};
use crate::folder::Table;
use crate::report::RoundReport;
use crate::{TrainConfig, TrainError};

/// `metrics.csv`, `perf.csv` and the event file.
pub(crate) struct Curves {
    metrics: Table,
    perf: Table,
    events: Events,
}

impl Curves {
    /// Opens all three in `folder`. `tables`: header and length to cut back to of `metrics.csv`
    /// and `perf.csv`; length 0 begins anew. `restart_at`: the first step that is written again.
    pub(crate) fn open(
        folder: &Path,
        tables: [(&str, u64); 2],
        restart_at: Option<u64>,
    ) -> Result<Self, TrainError> {
        let [(metrics, metrics_bytes), (perf, perf_bytes)] = tables;
        Ok(Self {
            metrics: Table::reopen(folder.join("metrics.csv"), metrics_bytes, metrics)?,
            perf: Table::reopen(folder.join("perf.csv"), perf_bytes, perf)?,
            events: Events::new(EventFile::create(folder, restart_at)),
        })
    }

    /// Describes the run to TensorBoard.
    pub(crate) fn describe(&mut self, config: &TrainConfig) {
        let hparams = hyper_parameters(config);
        let text = format!("```toml\n{}\n```", config.to_toml());
        self.events.write(|file| {
            file.hparams(&hparams)?;
            file.text("config", 0, &text)?;
            file.flush()
        });
    }

    /// Adds a round.
    pub(crate) fn round(
        &mut self,
        report: &RoundReport,
        console: &Console,
    ) -> Result<(), TrainError> {
        self.metrics.row(&report.metrics_row())?;
        self.perf.row(&report.perf_row())?;
        self.write_events(report, console);
        Ok(())
    }

    /// Adds a validation that belongs to no round.
    pub(crate) fn validation(
        &mut self,
        report: &RoundReport,
        console: &Console,
    ) -> Result<(), TrainError> {
        self.metrics.row(&report.metrics_row())?;
        let step = report.counters.decisions;
        if let Some(result) = &report.validation {
            self.events.write(|file| {
                file.scalar("validation/ratio_to_dt", step, result.value)?;
                file.scalar("validation/mean_fct_ratio_to_dt", step, result.fct_ratio)?;
                file.flush()
            });
        }
        self.report_failure(console);
        Ok(())
    }

    fn write_events(&mut self, report: &RoundReport, console: &Console) {
        self.events.write(|file| report.write_events(file));
        self.report_failure(console);
    }

    fn report_failure(&mut self, console: &Console) {
        if let Some(error) = self.events.take_failure() {
            console.warn(&format!(
                "the TensorBoard event file cannot be written ({error}); the training goes on \
                 without it"
            ));
        }
    }

    /// Waits until the tables are on the disk; returns their lengths.
    pub(crate) fn sync(&self) -> Result<(u64, u64), TrainError> {
        Ok((self.metrics.sync()?, self.perf.sync()?))
    }
}

/// Every setting but the scenario's, by its name in the configuration.
fn hyper_parameters(config: &TrainConfig) -> Vec<(String, HyperParameter)> {
    fn flatten(prefix: &str, table: &toml::Table, out: &mut Vec<(String, HyperParameter)>) {
        for (key, value) in table {
            let name = format!("{prefix}{key}");
            let value = match value {
                toml::Value::Table(table) => {
                    flatten(&format!("{name}."), table, out);
                    continue;
                }
                toml::Value::Integer(number) => HyperParameter::Number(*number as f64),
                toml::Value::Float(number) => HyperParameter::Number(*number),
                toml::Value::Boolean(flag) => HyperParameter::Flag(*flag),
                toml::Value::String(text) => HyperParameter::Text(text.clone()),
                other => HyperParameter::Text(other.to_string()),
            };
            out.push((name, value));
        }
    }
    let mut table = config.identity();
    table.remove("scenario");
    let name = HyperParameter::Text(config.scenario.name.clone());
    let mut out = vec![("scenario".to_owned(), name)];
    flatten("", &table, &mut out);
    out
}
