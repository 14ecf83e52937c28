//! Flow-size distributions, given as points of a cumulative distribution function, and those of the
//! workloads.

use std::sync::OnceLock;

use super::Workload;
use crate::convert::floor_u64;

/// The error for points that are not a valid distribution.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{origin}:{line}: {problem}")]
pub struct SizeError {
    /// The file.
    pub origin: String,
    /// The line, from 1.
    pub line: usize,
    /// What is wrong there and what would be right.
    pub problem: String,
}

/// A flow-size distribution: linear between the points of its cumulative distribution function.
#[derive(Clone, Debug, PartialEq)]
pub struct SizeDistribution {
    /// Sizes in bytes, in ascending order; equal sizes are allowed.
    bytes: Vec<f64>,
    /// For each size, the probability of a flow of at most that size. Increases from 0 to 1.
    cumulative: Vec<f64>,
}

/// Number of midpoints over which [`SizeDistribution::expected`] integrates.
const QUANTILES: u32 = 4_096;

impl SizeDistribution {
    /// Parses lines `bytes,cdf`; a header line `bytes,cdf`, empty lines and lines that start with
    /// `#` are skipped. `origin` is the file's name and appears in errors.
    ///
    /// # Errors
    /// Fewer than two points, a line that is not two numbers, sizes or probabilities that go
    /// down, a first probability other than 0, a last one other than 1.
    pub fn from_csv(text: &str, origin: &str) -> Result<SizeDistribution, SizeError> {
        let mut result = SizeDistribution {
            bytes: Vec::new(),
            cumulative: Vec::new(),
        };
        let error = |line, problem: String| SizeError {
            origin: origin.to_owned(),
            line,
            problem,
        };
        let mut last_line = 1;
        for (index, content) in text.lines().enumerate() {
            let (line, content) = (index + 1, content.trim());
            if content.is_empty() || content.starts_with('#') || content == "bytes,cdf" {
                continue;
            }
            last_line = line;
            let (size, probability) = point(content).ok_or_else(|| {
                error(
                    line,
                    format!("`{content}` is not bytes,cdf with two numbers, as in 10000,0.15"),
                )
            })?;
            result
                .push(size, probability)
                .map_err(|problem| error(line, problem))?;
        }
        if result.bytes.len() < 2 {
            return Err(error(
                last_line,
                "a distribution needs at least two points, with cdf 0 and 1".to_owned(),
            ));
        }
        match result.cumulative.last() {
            Some(1.0) => Ok(result),
            _ => Err(error(last_line, "the last cdf must be 1".to_owned())),
        }
    }

    fn push(&mut self, size: f64, probability: f64) -> Result<(), String> {
        // Whole bytes up to 2^53 are exact as f64.
        if !(0.0..=9_007_199_254_740_992.0).contains(&size) {
            return Err(format!(
                "a size of {size} bytes; sizes must be from 0 to 2^53"
            ));
        }
        match (self.bytes.last(), self.cumulative.last()) {
            (Some(last_size), Some(last)) => {
                if size < *last_size {
                    return Err(format!(
                        "bytes go down from {last_size} to {size}; they must increase"
                    ));
                }
                if probability.is_nan() || probability <= *last || probability > 1.0 {
                    return Err(format!(
                        "cdf {probability} after {last}; it must increase and stay at most 1"
                    ));
                }
            }
            _ if probability != 0.0 => {
                return Err(format!("the first cdf is {probability}; it must be 0"));
            }
            _ => {}
        }
        self.bytes.push(size);
        self.cumulative.push(probability);
        Ok(())
    }

    /// The mean size in bytes, exact for the interpolated distribution.
    pub fn mean(&self) -> f64 {
        let mut mean = 0.0;
        for (sizes, probabilities) in self.bytes.windows(2).zip(self.cumulative.windows(2)) {
            mean += (probabilities[1] - probabilities[0]) * (sizes[0] + sizes[1]) / 2.0;
        }
        mean
    }

    /// The size in bytes such that a fraction `u` of the flows is smaller, before rounding.
    ///
    /// `u` is clamped to [0, 1].
    pub fn quantile(&self, u: f64) -> f64 {
        let u = u.clamp(0.0, 1.0);
        let last = self.bytes.len() - 1;
        let upper = self
            .cumulative
            .partition_point(|probability| *probability < u)
            .clamp(1, last);
        let (low, high) = (self.cumulative[upper - 1], self.cumulative[upper]);
        let (small, large) = (self.bytes[upper - 1], self.bytes[upper]);
        small + (large - small) * ((u - low) / (high - low))
    }

    /// The size of a flow, whole bytes and at least 1, for `u` uniform in [0, 1).
    pub fn sample(&self, u: f64) -> u64 {
        floor_u64(self.quantile(u)).max(1)
    }

    /// The mean of `value(size)` over the distribution, `size` in whole bytes.
    ///
    /// Midpoint rule over 4,096 equally likely sizes; the same result on every machine.
    pub fn expected(&self, mut value: impl FnMut(u64) -> f64) -> f64 {
        let mut sum = 0.0;
        for index in 0..QUANTILES {
            sum += value(self.sample((f64::from(index) + 0.5) / f64::from(QUANTILES)));
        }
        sum / f64::from(QUANTILES)
    }
}

fn point(content: &str) -> Option<(f64, f64)> {
    let (size, probability) = content.split_once(',')?;
    Some((size.trim().parse().ok()?, probability.trim().parse().ok()?))
}

impl Workload {
    /// The distribution of the flow sizes.
    pub fn distribution(self) -> &'static SizeDistribution {
        const COUNT: usize = Workload::ALL.len();
        static PARSED: [OnceLock<SizeDistribution>; COUNT] = [const { OnceLock::new() }; COUNT];
        let text = match self {
            Workload::WebSearch => include_str!("../../data/web_search.csv"),
            Workload::DataMining => include_str!("../../data/data_mining.csv"),
            Workload::FbHadoop => include_str!("../../data/fb_hadoop.csv"),
            Workload::AliStorage => include_str!("../../data/ali_storage.csv"),
            Workload::WebSearchAbm => include_str!("../../data/web_search_abm.csv"),
        };
        PARSED[self as usize].get_or_init(|| {
            SizeDistribution::from_csv(text, self.name())
                .expect("the compiled-in distributions are valid: tested")
        })
    }

    /// The kind of its flows in a trace: `ws`, `dm`, `hadoop`, `storage` or `ws-abm`.
    pub const fn short_name(self) -> &'static str {
        match self {
            Workload::WebSearch => "ws",
            Workload::DataMining => "dm",
            Workload::FbHadoop => "hadoop",
            Workload::AliStorage => "storage",
            Workload::WebSearchAbm => "ws-abm",
        }
    }
}
