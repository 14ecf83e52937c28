//! Stored results of searches, and the policies that they represent.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bufgym::eval::Entrant;
use bufgym::eval::entrant::LINEAR;
use bufgym::eval::metric::Metric;
use bufgym::eval::tune::{Fit, Stored, Tuned};
use bufgym::sim::scenario::Scenario;
use bufgym::sim::switch::PolicySpec;
use bufgym::util::files::{self, Lock};
use bufgym::util::input::{MAX_JSON, excerpt, read_text};

use super::{linear, place};
use crate::cli::error::{CliError, CliResult, ResultExt as _};
use crate::cli::output::{Output, file_name};

include!(concat!(env!("OUT_DIR"), "/tuned.rs"));

/// Folder of the results, one file per scenario with all its settings.
const FOLDER: &str = "checkpoints/tuned";

/// Lock file in that folder, held while a result is added.
const LOCK: &str = ".lock";

/// Suffix of a policy string that means the tuned parameters.
const TUNED: &str = ":tuned";

/// The place for the result of a policy by a metric.
pub struct Kept<'a> {
    pub scenario: &'a Scenario,
    pub metric: Metric,
    /// Names of the policy and its queue management.
    pub names: String,
    /// True if an existing result may be replaced.
    pub force: bool,
}

impl Kept<'_> {
    /// Returns the existing result with its file.
    ///
    /// # Errors
    /// Bad input: a file of results is broken.
    pub fn there(&self) -> CliResult<Option<(PathBuf, Tuned)>> {
        let (path, stored) = self.place()?;
        let entry = stored.entry(self.metric, &self.names).cloned();
        Ok(entry.map(|entry| (path, entry)))
    }

    /// Refuses, before the search, everything that would be refused after it.
    ///
    /// # Errors
    /// Bad input: there is a result, a file of results is broken, or it cannot be written.
    pub fn check(&self) -> CliResult {
        let (path, stored) = self.place()?;
        if stored.entry(self.metric, &self.names).is_some() && !self.force {
            let name = &self.names;
            let way_out = match self.metric {
                Metric::MeanFct => format!("use {name}{TUNED}, or give --force"),
                _ => "give --force".to_owned(),
            };
            return Err(CliError::bad(format!(
                "{} has {name} tuned for scenario {} with these settings: {way_out} to search again and replace it",
                path.display(),
                self.scenario.name
            )));
        }
        Output::file(&path, true).map(drop)
    }

    /// Returns the file for the result and its current content: the file with a result for the policy,
    /// otherwise one of the scenario, otherwise a new one.
    fn place(&self) -> CliResult<(PathBuf, Stored)> {
        let mut files = stored(self.scenario)?;
        let found = files
            .iter()
            .position(|(_, stored)| stored.entry(self.metric, &self.names).is_some());
        if !files.is_empty() {
            return Ok(files.swap_remove(found.unwrap_or(0)));
        }
        let path = Path::new(FOLDER).join(format!("{}.json", place::key(self.scenario)));
        let path = match path.exists() {
            // The file has the name of this scenario, but other settings: earlier versions named files that
            // way.
            true => Path::new(FOLDER).join(format!("{}.json", place::hashed(self.scenario))),
            false => path,
        };
        Ok((path, Stored::new(self.scenario)))
    }

    /// Adds the result to the current content of the file, because other searches may have ended meanwhile.
    ///
    /// # Errors
    /// A failure: another search was faster, or the file cannot be written.
    pub fn keep(&self, tuned: Tuned) -> CliResult<PathBuf> {
        let failure = |error: std::io::Error| {
            CliError::failure(anyhow::Error::new(error).context(format!("cannot write {FOLDER}")))
        };
        std::fs::create_dir_all(FOLDER).map_err(failure)?;
        let _lock = Lock::wait(&Path::new(FOLDER).join(LOCK)).map_err(failure)?;
        let (path, mut stored) = self.place()?;
        if stored.entry(self.metric, &self.names).is_some() && !self.force {
            return Err(CliError::failure(anyhow::anyhow!(
                "{} has got {} tuned by another search meanwhile: the result above is not kept; --force replaces",
                path.display(),
                self.names
            )));
        }
        stored.keep(self.metric, &self.names, tuned);
        files::replace(&path, stored.to_json().as_bytes()).map_err(failure)?;
        Ok(path)
    }
}

/// Returns the files of results for exactly this scenario, with their content.
fn stored(scenario: &Scenario) -> CliResult<Vec<(PathBuf, Stored)>> {
    let mut files = files_of(scenario)?;
    files.retain(|(fit, ..)| *fit == Fit::Exact);
    Ok(files
        .into_iter()
        .map(|(_, path, stored)| (path, stored))
        .collect())
}

/// Returns the files of results that fit the scenario, with the fit and the content.
fn files_of(scenario: &Scenario) -> CliResult<Vec<(Fit, PathBuf, Stored)>> {
    let mut found = Vec::new();
    for path in place::candidates(Path::new(FOLDER), &file_name(&scenario.name))? {
        let origin = path.display().to_string();
        let text = read_text(&path, MAX_JSON)
            .map_err(|error| CliError::bad(format!("{origin}: {error}")))?;
        let stored = Stored::read(&text, &origin).or_bad_input()?;
        if let Some(fit) = stored.fit(scenario, &origin).or_bad_input()? {
            found.push((fit, path, stored));
        }
    }
    Ok(found)
}

/// Returns everything that was tuned for the scenario, with its origin, the best fit first: files come before
/// results shipped with the program, and results of runs of this duration before those of others.
fn sources(scenario: &Scenario) -> CliResult<Vec<(String, Stored)>> {
    let mut found: Vec<(Fit, String, Stored)> = files_of(scenario)?
        .into_iter()
        .map(|(fit, path, stored)| (fit, path.display().to_string(), stored))
        .collect();
    for (origin, text) in BUILT_IN {
        let stored = Stored::read(text, origin).or_failure()?;
        if let Some(fit) = stored.fit(scenario, origin).or_failure()? {
            found.push((fit, (*origin).to_owned(), stored));
        }
    }
    found.sort_by_key(|(fit, ..)| *fit);
    Ok(found
        .into_iter()
        .map(|(_, origin, stored)| (origin, stored))
        .collect())
}

/// Returns the policy of a policy string `P:tuned` or `P+A:tuned`; `None` for other strings.
///
/// # Errors
/// Bad input: no such policy, or it was not tuned for this scenario.
pub fn tuned(text: &str, scenario: &Scenario) -> CliResult<Option<Entrant>> {
    let Some(name) = text.strip_suffix(TUNED) else {
        return Ok(None);
    };
    if name == LINEAR {
        return linear::tuned(scenario).map(Some);
    }
    let policy: PolicySpec = name.parse().or_bad_input()?;
    let names = policy.names();
    if name != names {
        return Err(CliError::bad(format!(
            "policy {}: tuned stands for all parameters; write {names}{TUNED}, or the parameters alone",
            excerpt(text),
        )));
    }
    let found = if_tuned(&names, scenario)?;
    found.map(Some).ok_or_else(|| {
        CliError::bad(format!(
            "policy {text} was not tuned for scenario {} with these settings; run `bufgym tune --policy {name}` with the same --scenario and --set first",
            scenario.name
        ))
    })
}

/// Returns the policy of these names with the parameters tuned for mean FCT in the scenario.
///
/// # Errors
/// Bad input: the file of tuned parameters is broken.
pub fn if_tuned(names: &str, scenario: &Scenario) -> CliResult<Option<Entrant>> {
    let spec = parameters(Metric::MeanFct, names, scenario)?;
    Ok(spec.map(Entrant::tuned))
}

/// Returns everything that was tuned for mean FCT in the scenario, the best on validation traces first. A
/// result that was chosen on fewer than half as many traces as another comes last, since its value says
/// little. Among several results for the same names, the one of the best fit counts, and files come before
/// results shipped with the program.
///
/// # Errors
/// Bad input: a file of tuned parameters is broken.
pub fn all_tuned(scenario: &Scenario) -> CliResult<Vec<(PolicySpec, Tuned)>> {
    let mut all: BTreeMap<String, Tuned> = BTreeMap::new();
    for (_, stored) in sources(scenario)? {
        for (names, tuned) in stored.entries(Metric::MeanFct) {
            all.entry(names.clone()).or_insert_with(|| tuned.clone());
        }
    }
    let parsed: CliResult<Vec<_>> = all
        .into_values()
        .map(|tuned| Ok((tuned.policy.parse::<PolicySpec>().or_bad_input()?, tuned)))
        .collect();
    let mut parsed = parsed?;
    best_first(&mut parsed);
    Ok(parsed)
}

fn best_first(tuned: &mut [(PolicySpec, Tuned)]) {
    let most = tuned.iter().map(|(_, tuned)| tuned.traces).max();
    let few = |tuned: &Tuned| tuned.traces < most.unwrap_or(0).div_ceil(2);
    tuned.sort_by(|(_, a), (_, b)| {
        let by_value = a.ratio_to_dt.total_cmp(&b.ratio_to_dt);
        few(a).cmp(&few(b)).then(by_value)
    });
}

/// Returns the tuned parameters: those in the results file, or otherwise those shipped with the program.
///
/// # Errors
/// Bad input: the file of tuned parameters is broken.
pub fn parameters(
    metric: Metric,
    names: &str,
    scenario: &Scenario,
) -> CliResult<Option<PolicySpec>> {
    for (origin, stored) in sources(scenario)? {
        let found = stored.policy(metric, names, &origin);
        if let Some(spec) = found.or_bad_input()? {
            return Ok(Some(spec));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_few_traces_chose_comes_last() {
        let tuned = |(policy, ratio_to_dt, traces): (&str, f64, u64)| {
            let tuned = Tuned {
                policy: policy.to_owned(),
                ratio_to_dt,
                start_ratio_to_dt: 1.0,
                traces,
                seed: 1,
                split: None,
                simulations: None,
                budget: None,
                edges: Vec::new(),
            };
            (policy.parse().unwrap(), tuned)
        };
        let all = [
            ("dt", 0.7, 64),
            ("fab", 0.5, 31),
            ("edt", 0.6, 57),
            ("ib", 0.4, 11),
            ("abm", 0.65, 32),
        ];
        let mut all: Vec<(PolicySpec, Tuned)> = all.into_iter().map(tuned).collect();
        best_first(&mut all);
        let order: Vec<&str> = all.iter().map(|(_, tuned)| tuned.policy.as_str()).collect();
        assert_eq!(order, ["edt", "abm", "dt", "ib", "fab"]);
    }
}
