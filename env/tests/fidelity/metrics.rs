//! What is measured of a run, whichever simulator did it.

/// A number that describes a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Metric {
    /// Mean FCT.
    Mean,
    /// Median FCT.
    P50,
    /// 99th percentile of FCT.
    P99,
    /// Mean FCT of web-search flows of at most 100 kB.
    ShortWeb,
    /// Mean FCT of web-search flows of more than 1 MB.
    LongWeb,
    /// Mean FCT of in-cast flows.
    InCast,
    /// Packets that left the switch ports.
    Forwarded,
    /// Packets dropped at the switch.
    Drops,
    /// ECN marks.
    Marks,
}

/// All of them, the times (milliseconds) first.
pub const METRICS: [Metric; 9] = [
    Metric::Mean,
    Metric::P50,
    Metric::P99,
    Metric::ShortWeb,
    Metric::LongWeb,
    Metric::InCast,
    Metric::Forwarded,
    Metric::Drops,
    Metric::Marks,
];

impl Metric {
    /// For tables.
    pub const fn name(self) -> &'static str {
        match self {
            Metric::Mean => "mean FCT, ms",
            Metric::P50 => "p50 FCT, ms",
            Metric::P99 => "p99 FCT, ms",
            Metric::ShortWeb => "web search ≤ 100 kB, mean FCT, ms",
            Metric::LongWeb => "web search > 1 MB, mean FCT, ms",
            Metric::InCast => "in-cast, mean FCT, ms",
            Metric::Forwarded => "packets forwarded",
            Metric::Drops => "drops",
            Metric::Marks => "ECN marks",
        }
    }
}

/// One completed flow.
#[derive(Clone, Debug, PartialEq)]
pub struct Completion {
    /// `ws`, `incast`, `iso` or `long`.
    pub kind: String,
    /// Payload bytes.
    pub size: u64,
    /// From the start to the SYN-ACK's arrival at the sender, nanoseconds.
    pub established_ns: u64,
    /// From the start to the delivery of the last byte, nanoseconds.
    pub fct_ns: u64,
}

impl Completion {
    /// From the establishment to the delivery of the last byte, milliseconds.
    pub fn ms(&self) -> f64 {
        (self.fct_ns - self.established_ns) as f64 * 1e-6
    }
}

/// A run of a flow list.
#[derive(Clone, Debug)]
pub struct Run {
    /// In the order of the list.
    pub flows: Vec<Completion>,
    /// Packets that left the switch ports.
    pub forwarded: u64,
    /// Packets dropped at the switch.
    pub drops: u64,
    /// ECN marks.
    pub marks: u64,
}

impl Run {
    /// A metric of this run; `None` where the list has no flow of the class.
    pub fn metric(&self, metric: Metric) -> Option<f64> {
        let web = |flow: &&Completion| flow.kind == "ws";
        match metric {
            Metric::Mean => mean(self.times(|_| true)),
            Metric::P50 => nearest_rank(self.times(|_| true), 50),
            Metric::P99 => nearest_rank(self.times(|_| true), 99),
            Metric::ShortWeb => mean(self.times(|flow| web(flow) && flow.size <= 100_000)),
            Metric::LongWeb => mean(self.times(|flow| web(flow) && flow.size > 1_000_000)),
            Metric::InCast => mean(self.times(|flow| flow.kind == "incast")),
            Metric::Forwarded => Some(self.forwarded as f64),
            Metric::Drops => Some(self.drops as f64),
            Metric::Marks => Some(self.marks as f64),
        }
    }

    fn times(&self, keep: impl Fn(&&Completion) -> bool) -> Vec<f64> {
        self.flows.iter().filter(keep).map(Completion::ms).collect()
    }
}

/// `None` for no values.
pub fn mean(values: Vec<f64>) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Standard deviation of a sample; `None` for fewer than two values.
pub fn deviation(values: &[f64]) -> Option<f64> {
    let mean = mean(values.to_vec())?;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (values.len() > 1).then(|| (squares / (values.len() - 1) as f64).sqrt())
}

/// The smallest value that at least `percent` per cent of the values do not exceed.
fn nearest_rank(mut values: Vec<f64>, percent: usize) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let rank = (percent * values.len()).div_ceil(100);
    values.get(rank.max(1) - 1).copied()
}
