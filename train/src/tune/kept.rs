//! Stored results of searches: a file for every scenario with all its settings.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use bufgym_eval::metric::Metric;
use bufgym_eval::tune::{Fit, Stored, Tuned};
use bufgym_sim::scenario::Scenario;
use bufgym_sim::switch::PolicySpec;
use bufgym_util::files::{self, Lock, file_name};
use bufgym_util::input::{MAX_JSON, read_text};

use super::names;
use crate::error::KeptError;

/// Lock file in a folder of results, held while a result is added.
const LOCK: &str = ".lock";

/// Stored results: a folder of files, and the files that a program brings along.
#[derive(Clone, Copy, Debug)]
pub struct Results<'a> {
    /// The folder, which may be missing.
    pub folder: &'a Path,
    /// Names and texts of further files. Those in the folder take precedence.
    pub built_in: &'a [(&'a str, &'a str)],
}

impl Results<'_> {
    /// Returns the files of the folder that fit the scenario, with the fit and the content.
    fn files(&self, scenario: &Scenario) -> Result<Vec<(Fit, PathBuf, Stored)>, KeptError> {
        let unreadable =
            |path: &Path, problem: String| KeptError::refused(path, format!(": {problem}"));
        let mut found = Vec::new();
        let candidates = names::candidates(self.folder, &file_name(&scenario.name));
        for path in candidates.map_err(|error| unreadable(self.folder, error.to_string()))? {
            let text =
                read_text(&path, MAX_JSON).map_err(|error| unreadable(&path, error.to_string()))?;
            let origin = path.display().to_string();
            let stored = Stored::read(&text, &origin)?;
            if let Some(fit) = stored.fit(scenario, &origin)? {
                found.push((fit, path, stored));
            }
        }
        Ok(found)
    }

    /// Returns everything that was tuned for the scenario, with its origin, the best fit first: files of the folder come
    /// before those of the program, and results of runs of this duration before those of others.
    fn sources(&self, scenario: &Scenario) -> Result<Vec<(String, Stored)>, KeptError> {
        let files = self.files(scenario)?.into_iter();
        let mut found: Vec<(Fit, String, Stored)> = files
            .map(|(fit, path, stored)| (fit, path.display().to_string(), stored))
            .collect();
        let broken = |error| KeptError::BuiltIn(Box::new(error));
        for (origin, text) in self.built_in {
            let stored = Stored::read(text, origin).map_err(broken)?;
            if let Some(fit) = stored.fit(scenario, origin).map_err(broken)? {
                found.push((fit, (*origin).to_owned(), stored));
            }
        }
        found.sort_by_key(|(fit, ..)| *fit);
        let found = found.into_iter();
        Ok(found.map(|(_, origin, stored)| (origin, stored)).collect())
    }

    /// Returns the policy of these names with the parameters that were tuned for the scenario.
    ///
    /// # Errors
    /// Fails if a file is broken.
    pub fn policy(
        &self,
        metric: Metric,
        names: &str,
        scenario: &Scenario,
    ) -> Result<Option<PolicySpec>, KeptError> {
        for (origin, stored) in self.sources(scenario)? {
            if let Some(spec) = stored.policy(metric, names, &origin)? {
                return Ok(Some(spec));
            }
        }
        Ok(None)
    }

    /// Returns the results from which a search for a policy starts: its own, and that of the rule without queue
    /// management.
    ///
    /// # Errors
    /// Fails if a file is broken.
    pub fn starts(
        &self,
        metric: Metric,
        policy: &PolicySpec,
        scenario: &Scenario,
    ) -> Result<Vec<PolicySpec>, KeptError> {
        let own = self.policy(metric, &policy.names(), scenario)?;
        let rule = match policy.aqm() {
            Some(_) => self.policy(metric, policy.name(), scenario)?,
            None => None,
        };
        let rule = rule.map(|rule| rule.with_aqm(policy.aqm().cloned()));
        Ok(own.into_iter().chain(rule).collect())
    }

    /// Returns everything that was tuned for mean FCT in the scenario, the best on validation traces first. A result
    /// that was chosen on fewer than half as many traces as another comes last, since its value says little. Among
    /// several results for the same names, the one of the best fit counts, and files of the folder come before those of
    /// the program.
    ///
    /// # Errors
    /// Fails if a file is broken.
    pub fn all(&self, scenario: &Scenario) -> Result<Vec<(PolicySpec, Tuned)>, KeptError> {
        let mut all: BTreeMap<String, (PolicySpec, Tuned)> = BTreeMap::new();
        for (origin, stored) in self.sources(scenario)? {
            for (names, tuned) in stored.entries(Metric::MeanFct) {
                if all.contains_key(names) {
                    continue;
                }
                if let Some(spec) = stored.policy(Metric::MeanFct, names, &origin)? {
                    all.insert(names.clone(), (spec, tuned.clone()));
                }
            }
        }
        let mut all: Vec<_> = all.into_values().collect();
        best_first(&mut all);
        Ok(all)
    }
}

fn best_first(tuned: &mut [(PolicySpec, Tuned)]) {
    let most = tuned.iter().map(|(_, tuned)| tuned.traces).max();
    let few = |tuned: &Tuned| tuned.traces < most.unwrap_or(0).div_ceil(2);
    tuned.sort_by(|(_, a), (_, b)| {
        let by_value = a.ratio_to_dt.total_cmp(&b.ratio_to_dt);
        few(a).cmp(&few(b)).then(by_value)
    });
}

/// The place for the result of a policy by a metric.
#[derive(Clone, Debug)]
pub struct Kept<'a> {
    /// The stored results.
    pub results: Results<'a>,
    /// The scenario of the search.
    pub scenario: &'a Scenario,
    /// Metric of the search.
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
    /// Fails if a file is broken.
    pub fn there(&self) -> Result<Option<(PathBuf, Tuned)>, KeptError> {
        let (path, stored) = self.place()?;
        let entry = stored.entry(self.metric, &self.names).cloned();
        Ok(entry.map(|entry| (path, entry)))
    }

    /// Returns the file for the result.
    ///
    /// # Errors
    /// Fails if there is a result that may not be replaced, or if a file is broken.
    pub fn file(&self) -> Result<PathBuf, KeptError> {
        let (path, stored) = self.place()?;
        if stored.entry(self.metric, &self.names).is_some() && !self.force {
            let names = &self.names;
            let way_out = match self.metric {
                Metric::MeanFct => format!("use {names}:tuned, or give --force"),
                _ => "give --force".to_owned(),
            };
            let problem = format!(
                " has {names} tuned for scenario {} with these settings: {way_out} to search again and replace it",
                self.scenario.name
            );
            return Err(KeptError::refused(&path, problem));
        }
        Ok(path)
    }

    /// Returns the file for the result and its current content: the file with a result for the policy, otherwise one of
    /// the scenario, otherwise a new one.
    fn place(&self) -> Result<(PathBuf, Stored), KeptError> {
        let mut files = self.results.files(self.scenario)?;
        files.retain(|(fit, ..)| *fit == Fit::Exact);
        let found = files
            .iter()
            .position(|(.., stored)| stored.entry(self.metric, &self.names).is_some());
        if !files.is_empty() {
            let (_, path, stored) = files.swap_remove(found.unwrap_or(0));
            return Ok((path, stored));
        }
        let path = names::new_file(self.results.folder, "", self.scenario);
        Ok((path, Stored::new(self.scenario)))
    }

    /// Adds the result to the current content of the file, because other searches may have ended meanwhile.
    ///
    /// # Errors
    /// Fails if another search was faster, or if the file cannot be written.
    pub fn keep(&self, tuned: Tuned) -> Result<PathBuf, KeptError> {
        let folder = self.results.folder;
        let failure = |source: io::Error| KeptError::Write {
            folder: folder.to_owned(),
            source,
        };
        std::fs::create_dir_all(folder).map_err(failure)?;
        let _lock = Lock::wait(&folder.join(LOCK)).map_err(failure)?;
        let (path, mut stored) = self.place()?;
        if stored.entry(self.metric, &self.names).is_some() && !self.force {
            let names = self.names.clone();
            return Err(KeptError::Overtaken { path, names });
        }
        stored.keep(self.metric, &self.names, tuned);
        files::replace(&path, stored.to_json().as_bytes()).map_err(failure)?;
        Ok(path)
    }
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
