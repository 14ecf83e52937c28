//! The destinations of a training's output: run folder, console, tables and curves.

use std::path::{Path, PathBuf};

use bufgym_models::checkpoint::MANIFEST_FILE;
use bufgym_models::files::current_folder;

use crate::TrainError;
use crate::console::Console;
use crate::folder::RunFolder;
use crate::report::Curves;
use crate::state::State;

/// Destinations of a training's output.
pub(crate) struct Output<'a> {
    pub(crate) folder: RunFolder,
    pub(crate) console: Console<'a>,
    pub(crate) curves: Curves,
    /// The newest state in the folder.
    pub(crate) stored: Option<PathBuf>,
}

impl<'a> Output<'a> {
    /// Opens tables and curves. In a resumed training it cuts the tables back to the stored state.
    pub(crate) fn open(
        mut folder: RunFolder,
        mut console: Console<'a>,
        resumed: Option<&State>,
    ) -> Result<Self, TrainError> {
        if resumed.is_some() {
            folder.watch_checkpoints()?;
        }
        let log = folder.path().join("train.log");
        console.log_to(&log).map_err(TrainError::io(&log))?;
        let bytes = resumed.map_or((0, 0), lengths);
        let restart_at = resumed.map(|state| state.counters.decisions + 1);
        Ok(Self {
            curves: Curves::open(folder.path(), bytes, restart_at)?,
            folder,
            console,
            stored: None,
        })
    }

    /// Returns descriptions of missing files that a resumed training needs. Missing rows of the wall-clock table only
    /// cause a warning, because they can be measured again.
    pub(crate) fn missing(folder: &RunFolder, console: &Console<'_>, state: &State) -> Vec<String> {
        let (metrics, perf) = Curves::problems(folder.path(), lengths(state));
        if let Some(problem) = perf {
            console.warn(&format!("{problem}; rows that are missing stay missing"));
        }
        let best = state.best.is_some() && !has_manifest(&folder.best());
        let best = best.then(|| "checkpoints/best is missing".to_owned());
        metrics.into_iter().chain(best).collect()
    }

    /// Returns a description of files that are missing from the folder; empty if there are none.
    pub(crate) fn lost(&self, has_best: bool) -> String {
        if !self.folder.is_there() {
            return "the folder was moved or removed".to_owned();
        }
        let mut lost = self.folder.lost();
        lost.extend(self.curves.lost());
        let checkpoints = "checkpoints";
        if !lost.contains(&checkpoints) {
            let state = self.stored.as_ref();
            if state.is_some_and(|state| !state.is_dir()) {
                lost.push("the newest of checkpoints/step-N");
            }
            if has_best && !has_manifest(&self.folder.best()) {
                lost.push("checkpoints/best");
            }
        }
        match lost.as_slice() {
            [] => String::new(),
            [one] => format!("{one} was removed, replaced or altered"),
            more => format!("{} were removed, replaced or altered", more.join(", ")),
        }
    }
}

/// Lengths of the tables, bytes.
fn lengths(state: &State) -> (u64, u64) {
    (state.metrics_bytes, state.perf_bytes)
}

fn has_manifest(checkpoint: &Path) -> bool {
    current_folder(checkpoint).join(MANIFEST_FILE).is_file()
}
