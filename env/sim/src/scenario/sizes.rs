//! Flow-size distributions, given as points of a cumulative distribution function, and those of the
//! workloads.

use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;

use bufgym_util::convert::floor_u64;
use bufgym_util::input::excerpt;

use super::{MAX_FLOW_BYTES, Workload};

/// The error for points that are not a valid distribution.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{origin}:{line}:{column}: {problem}")]
pub struct SizeError {
    /// The file.
    pub origin: String,
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1.
    pub column: usize,
    /// The problem found there, and a valid alternative.
    pub problem: String,
}

/// A flow-size distribution: linear between the points of its cumulative distribution function.
///
/// The text form is its points, `bytes:cdf` with blanks between them, such as `0:0 1000:0.5 9000:1`.
#[derive(Clone, Debug, PartialEq)]
pub struct SizeDistribution {
    /// Sizes in bytes, in ascending order; equal sizes are allowed.
    bytes: Vec<f64>,
    /// For each size, the probability of a flow of at most that size. It rises from 0 to 1, and only
    /// the last size has 1; equal probabilities are allowed before.
    cumulative: Vec<f64>,
}

/// Number of midpoints over which [`SizeDistribution::expected`] integrates.
const QUANTILES: u32 = 4_096;

/// Most points of a distribution.
const MAX_POINTS: usize = 4_096;

impl SizeDistribution {
    /// Most bytes of a file with a distribution.
    pub const MAX_FILE: u64 = 1 << 20;

    /// Parses lines `bytes,cdf` or `bytes cdf`, as the size distributions of HPCC and ABM are. The last
    /// cdf is 1 or 100: then all are in percent. A header line `bytes,cdf`, empty lines and lines that
    /// start with `#` are skipped. `origin` is the file's name and appears in errors.
    ///
    /// # Errors
    /// Fewer than two points or more than 4,096, a line that is not two numbers, sizes or probabilities
    /// that go down, sizes beyond 1 TB, a first probability other than 0, a last one other than 1 or 100,
    /// a largest size below 1.
    pub fn from_text(text: &str, origin: &str) -> Result<SizeDistribution, SizeError> {
        let error = |line, column, problem: String| SizeError {
            origin: origin.to_owned(),
            line,
            column,
            problem,
        };
        let mut points = Vec::new();
        for (line, content) in (1..).zip(text.lines()) {
            let start = content.len() - content.trim_start().len();
            let column = content[..start].chars().count() + 1;
            let content = content.trim();
            if content.is_empty() || content.starts_with('#') || content == "bytes,cdf" {
                continue;
            }
            let values = content.split_once(|c: char| c == ',' || c.is_whitespace());
            let number = |text: &str| text.trim().parse::<f64>().ok();
            let point = values.and_then(|(bytes, cdf)| Some((number(bytes)?, number(cdf)?)));
            let Some(point) = point else {
                let problem = format!(
                    "`{}` is not bytes and cdf, as in 10000,0.15",
                    excerpt(content)
                );
                return Err(error(line, column, problem));
            };
            if points.len() == MAX_POINTS {
                let problem = format!("more than {MAX_POINTS} points, the most that are read");
                return Err(error(line, column, problem));
            }
            points.push((line, column, point));
        }
        let (last_line, last_column, last) = match points.last() {
            Some((line, column, (_, cdf))) => (*line, *column, *cdf),
            None => (1, 1, 1.0),
        };
        let unit = if last == 100.0 { 100.0 } else { 1.0 };
        let mut result = SizeDistribution {
            bytes: Vec::new(),
            cumulative: Vec::new(),
        };
        for (line, column, (bytes, cdf)) in points {
            result
                .push(bytes, cdf / unit)
                .map_err(|problem| error(line, column, problem))?;
        }
        result
            .finish()
            .map_err(|problem| error(last_line, last_column, problem))?;
        Ok(result)
    }

    fn push(&mut self, size: f64, probability: f64) -> Result<(), String> {
        if !(0.0..=MAX_FLOW_BYTES as f64).contains(&size) {
            return Err(format!(
                "a size of {size} bytes; sizes must be from 0 to {MAX_FLOW_BYTES}"
            ));
        }
        match (self.bytes.last(), self.cumulative.last()) {
            (Some(last_size), Some(last)) => {
                if size < *last_size {
                    return Err(format!(
                        "bytes go down from {last_size} to {size}; they must increase"
                    ));
                }
                if probability.is_nan() || probability < *last || probability > 1.0 {
                    return Err(format!(
                        "cdf {probability} after {last}; it must not go down, and end with 1, or \
                         with 100 in percent"
                    ));
                }
            }
            _ if probability != 0.0 => {
                return Err(format!(
                    "the first cdf is {probability}; it must be 0: begin with the smallest size and 0"
                ));
            }
            _ => {}
        }
        // Zero has no sign here, so that equal distributions have equal texts.
        self.bytes.push(size + 0.0);
        self.cumulative.push(probability + 0.0);
        Ok(())
    }

    /// Checks the end, and removes points between which no flow is drawn: those before the last one
    /// with 0, and those after the first one with 1.
    fn finish(&mut self) -> Result<(), String> {
        if self.bytes.len() < 2 {
            return Err("a distribution needs at least two points, with cdf 0 and 1".to_owned());
        }
        if self.cumulative.last() != Some(&1.0) {
            return Err("the last cdf must be 1, or 100 in percent".to_owned());
        }
        let used = self.cumulative.partition_point(|value| *value < 1.0) + 1;
        let zeros = self.cumulative.partition_point(|value| *value <= 0.0);
        for values in [&mut self.bytes, &mut self.cumulative] {
            values.truncate(used);
            values.drain(..zeros - 1);
        }
        match self.bytes.last() {
            Some(1.0..) => Ok(()),
            _ => Err("the size with cdf 1 must be at least 1 byte".to_owned()),
        }
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
            .partition_point(|probability| *probability <= u)
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

impl fmt::Display for SizeDistribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (bytes, cdf)) in self.bytes.iter().zip(&self.cumulative).enumerate() {
            let separator = if place > 0 { " " } else { "" };
            write!(f, "{separator}{bytes}:{cdf}")?;
        }
        Ok(())
    }
}

impl FromStr for SizeDistribution {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<SizeDistribution, SizeError> {
        let lines = text.split_ascii_whitespace();
        let lines: Vec<_> = lines.map(|point| point.replacen(':', ",", 1)).collect();
        SizeDistribution::from_text(&lines.join("\n"), "point")
    }
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
            SizeDistribution::from_text(text, self.name())
                .expect("the compiled-in distributions are valid: tested")
        })
    }

    /// Returns the kind of the workload's flows in a trace: `ws`, `dm`, `hadoop`, `storage` or
    /// `ws-abm`.
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
