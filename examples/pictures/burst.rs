//! A burst to one port while another port is congested, and what policies make of it.

use std::collections::BTreeSet;
use std::fmt;
use std::fmt::Write as _;

use bufgym::eval::Entrant;
use bufgym::sim::network::{FlowRef, HostObserver, Observer, Outcome, TimelineRow};
use bufgym::sim::scenario::Scenario;
use bufgym::sim::switch::{Loss, PacketView, SwitchId, SwitchObserver, View};
use bufgym::sim::traffic::Trace;
use bufgym::sim::units::{Duration, Instant};

use crate::Failure;

/// Port of the burst, which is also its receiving host.
const PORT: u32 = 0;
/// Port that long flows congest.
const OTHER: u32 = 1;
/// Senders of the burst, and bytes of each.
pub const SENDERS: u32 = 12;
pub const BYTES: u64 = 120_000;
/// Long flows to the other port.
const LONG: u32 = 2;
const LONG_BYTES: u64 = 20_000_000;
/// The long flows have filled what they can by then.
const START: Instant = Instant::from_us(60_000);
/// Time between two samples of the queues.
const SAMPLE: Duration = Duration::from_us(50);

/// The scenario and its flows.
pub struct Burst {
    pub scenario: Scenario,
    pub trace: Trace,
}

/// One sample of the two ports, in kB and milliseconds after the start of the burst.
pub struct Sample {
    pub at: f64,
    pub queue: f64,
    pub other: f64,
    pub threshold: f64,
}

/// A lost packet of the burst.
pub struct Lost {
    /// Milliseconds after the start of the burst.
    pub at: f64,
    /// Share of the buffer that was free.
    pub free: f64,
    /// The switch dropped it although the policy had accepted it.
    pub early: bool,
}

/// A simulation.
pub struct Run {
    policy: String,
    pub samples: Vec<Sample>,
    pub lost: Vec<Lost>,
    /// Control factors of the burst's port from its start to its last byte, in ascending order; none for
    /// policies without.
    pub alphas: Vec<f64>,
    /// Flows of the burst with a retransmission timeout.
    pub timed_out: usize,
    pub mean_fct_ms: f64,
}

impl Burst {
    pub fn new() -> Result<Burst, Failure> {
        let mut list = "id,src,dst,start_ns,size_bytes,kind\n".to_owned();
        for long in 0..LONG {
            let source = OTHER + 1 + SENDERS + long;
            writeln!(list, "{long},{source},{OTHER},0,{LONG_BYTES},long")?;
        }
        for sender in 0..SENDERS {
            let (id, source) = (LONG + sender, OTHER + 1 + sender);
            writeln!(list, "{id},{source},{PORT},{},{BYTES},burst", START.as_ns())?;
        }
        Ok(Burst {
            scenario: Scenario::preset("ndt-16x1g")?,
            trace: Trace::from_reader(list.as_bytes(), "burst")?,
        })
    }

    pub fn run(&self, policy: &str) -> Result<Run, Failure> {
        let entrant: Entrant = policy.parse()?;
        let (outcome, watch) =
            entrant.run_observed(&self.scenario, &self.trace, Some(SAMPLE), Watch::default())?;
        let times: Vec<f64> = outcome
            .records
            .iter()
            .filter(|record| record.spec.dst == PORT)
            .filter_map(|record| record.fct.map(Duration::as_ms_f64))
            .collect();
        let mut alphas: Vec<f64> = outcome
            .timeline
            .iter()
            .filter(|row| row.port == PORT && row.t >= START && row.queue_bytes > 0)
            .map(|row| row.alpha)
            .filter(|alpha| alpha.is_finite())
            .collect();
        alphas.sort_by(f64::total_cmp);
        alphas.dedup();
        Ok(Run {
            policy: entrant.name().to_owned(),
            samples: samples(&outcome),
            lost: watch.lost,
            alphas,
            timed_out: watch.timed_out.len(),
            mean_fct_ms: times.iter().sum::<f64>() / times.len() as f64,
        })
    }
}

/// The rows of both ports at every instant.
fn samples(outcome: &Outcome) -> Vec<Sample> {
    let of = |port| outcome.timeline.iter().filter(move |row| row.port == port);
    let sample = |(row, other): (&TimelineRow, &TimelineRow)| Sample {
        at: after_start(row.t),
        queue: kilobytes(row.queue_bytes),
        other: kilobytes(other.queue_bytes),
        threshold: kilobytes(row.threshold_bytes),
    };
    of(PORT).zip(of(OTHER)).map(sample).collect()
}

fn after_start(at: Instant) -> f64 {
    at.as_ms_f64() - START.as_ms_f64()
}

pub fn kilobytes(bytes: u64) -> f64 {
    bytes as f64 / 1e3
}

/// Collects the losses and timeouts of the burst.
#[derive(Default)]
struct Watch {
    lost: Vec<Lost>,
    timed_out: BTreeSet<u32>,
}

impl SwitchObserver for Watch {
    fn lost(&mut self, _at: SwitchId, view: View<'_>, packet: PacketView, loss: Loss) {
        if packet.port == PORT as usize {
            self.lost.push(Lost {
                at: after_start(view.now),
                free: view.buffer.free() as f64 / view.buffer.capacity() as f64,
                early: matches!(loss, Loss::Early | Loss::Head),
            });
        }
    }
}

impl HostObserver for Watch {
    fn timed_out(&mut self, flow: FlowRef) {
        if u32::from(flow.dst) == PORT {
            self.timed_out.insert(flow.number);
        }
    }
}

impl Observer for Watch {}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let free = self.lost.iter().map(|lost| lost.free);
        write!(
            f,
            "{}: {} of {SENDERS} flows of the burst time out, mean FCT {:.1} ms, {} packets lost ({} early), \
             {:.0} to {:.0} % of the buffer free at losses, alpha {:?}",
            self.policy,
            self.timed_out,
            self.mean_fct_ms,
            self.lost.len(),
            self.lost.iter().filter(|lost| lost.early).count(),
            free.clone().fold(1.0, f64::min) * 100.0,
            free.fold(0.0, f64::max) * 100.0,
            self.alphas,
        )
    }
}
