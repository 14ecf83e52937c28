//! `bufgym sim`: one trace, one policy.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use bufgym::env::control::RecordError;
use bufgym::eval::Entrant;
use bufgym::eval::data::Role;
use bufgym::eval::entrant::ControlRecordError;
use bufgym::eval::output;
use bufgym::sim::capture::SwitchCapture;
use bufgym::sim::network::{FlowClass, FlowRecord, Outcome, Summary, SwitchRow, TimelineRow};
use bufgym::sim::scenario::Scenario;
use bufgym::sim::switch::PfcInterval;
use bufgym::sim::traffic::Trace;
use bufgym::sim::units::Duration;
use bufgym::util::input::visible;
use clap::Args;
use serde::Serialize;
use serde_json::{Value, json};

use super::Common;
use super::error::{CliError, CliResult, ResultExt as _};
use super::output::Output;
use super::policy;
use super::scenario::{FlowFile, ScenarioArgs, TraceChoice};

/// Simulate one trace under one policy
#[derive(Args)]
#[command(
    after_help = "--record-control needs a policy with a control loop: `ndt`, `ndt:DIR`, `ndt-int8:DIR`, \
    `linear:FILE` or `onnx:FILE`; docs/control-loop.md has the format.\n\n--pcap writes a packet when its last bit is \
    at the switch, with the headers that Linux would send, as `bufgym testbed run --pcap` does.\n\nExamples:\n  \
    bufgym sim --policy dt:alpha=8 --scenario ndt-16x1g --seed 3\n  \
    bufgym sim --policy edt --trace flows.csv --set min_rto_us=10000 --out out --timeline\n  \
    bufgym sim --policy ndt:runs/mine/checkpoints/best --trace flows.csv --json\n  \
    bufgym sim --policy ndt --seed 3 --record-control control.txt\n  \
    bufgym sim --policy dt --scenario testbed-4x100m --seed 3 --set flows=30 --pcap switch.pcap"
)]
pub struct SimArgs {
    /// Policy: `dt`, `dt:alpha=8`, `ndt`, `ndt:DIR`, `linear:FILE`, `onnx:FILE` ...
    /// (`bufgym list policies` has all)
    #[arg(long, value_name = "P")]
    policy: String,
    #[command(flatten)]
    file: FlowFile,
    #[command(flatten)]
    scenario: ScenarioArgs,
    #[command(flatten)]
    choice: TraceChoice,
    /// Folder for fct.csv, switches.csv and summary.json
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Also write timeline.csv: queue and threshold of every port over time
    #[arg(long, requires = "out")]
    timeline: bool,
    /// Time between rows of the timeline, microseconds
    #[arg(long, value_name = "US", default_value_t = 100, requires = "timeline",
        value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    timeline_interval_us: u64,
    /// Record packet events and decisions of a policy with a control loop, for dataplane/replay.c
    #[arg(long, value_name = "FILE")]
    record_control: Option<PathBuf>,
    /// Write the packets that come to the switch as a packet capture (one switch, TCP)
    #[arg(long, value_name = "FILE", conflicts_with = "record_control")]
    pcap: Option<PathBuf>,
    /// Write into a folder that is not empty, and over a record or a capture
    #[arg(long)]
    force: bool,
}

const FLOWS: &str = "fct.csv";
const SWITCHES: &str = "switches.csv";
const SUMMARY: &str = "summary.json";
const PAUSES: &str = "pfc.csv";
const TIMELINE: &str = "timeline.csv";

/// Names of the possible output files.
pub(super) const FILES: [&str; 5] = [FLOWS, SWITCHES, SUMMARY, PAUSES, TIMELINE];

/// Runs the command.
pub fn run(args: SimArgs, common: &Common) -> CliResult {
    let scenario = args.scenario.resolve_any()?;
    let policy = policy::parse(&args.policy, &scenario)?;
    let choice = &args.choice;
    let trace = choice.read_or_generate(&args.file, &scenario, common.seed())?;
    let mut output = Output::folder_if(args.out.as_deref(), args.force, &FILES)?;

    let file = |path: &PathBuf| Output::file(path, args.force);
    if args.record_control.is_some() && policy.role() != Role::Learned {
        let name = policy.name().to_owned();
        return Err(CliError::input(ControlRecordError::NoControl(name)));
    }
    let record = args.record_control.as_ref().map(file).transpose()?;
    let capture = args.pcap.as_ref().map(file).transpose()?;
    if let Some(output) = &mut output {
        let mut own = record.iter().chain(&capture);
        own.try_for_each(|file| output.admit(file))?;
    }

    let interval = args
        .timeline
        .then(|| Duration::from_us(args.timeline_interval_us));
    let outcome = match (&record, &capture) {
        (Some(file), _) => file.write_file(|out| {
            let run = policy.run_recorded(&scenario, &trace, interval, out);
            run.map_err(|error| match error {
                ControlRecordError::Record(RecordError::Write(_)) => CliError::failure(error),
                _ => CliError::input(error),
            })
        })?,
        (None, Some(file)) => file.write_file(|mut out| {
            let capture = SwitchCapture::new(&scenario, &trace, &mut out).or_bad_input()?;
            let run = policy.run_observed(&scenario, &trace, interval, capture);
            let (outcome, capture) = run.or_bad_input()?;
            capture.finish().or_failure()?;
            Ok(outcome)
        })?,
        (None, None) => policy.run(&scenario, &trace, interval).or_bad_input()?,
    };

    let written = [("control recorded in", &record), ("capture in", &capture)];
    for (what, file) in written {
        if let Some(file) = file
            && !common.json
        {
            common.note(format!("{what} {}", file.path().display()));
        }
    }
    if let Some(output) = &output {
        output.write_folder(|folder| {
            if scenario.has_lossless() {
                write_pauses(&folder.join(PAUSES), &outcome.pauses)?;
            }
            write_results(folder, &trace, &outcome, args.timeline, &outcome.summary)
        })?;
        common.note_written(output);
    }
    if let Some(warning) = scenario.lossless_warning() {
        common.note(format!("warning: {warning}"));
    }
    let unfinished = unfinished(&outcome);
    if let (None, Some(unfinished)) = (scenario.window(), &unfinished) {
        common.note(format!("warning: {unfinished}"));
    }
    common.print(
        &result_json(&policy, &scenario, &trace, &outcome)?,
        &describe(&policy, &scenario, &outcome.summary),
    )?;
    if let Some(problem) = lossless_failure(&scenario, &outcome) {
        return Err(CliError::failure(anyhow::anyhow!(problem)));
    }
    match (scenario.window(), unfinished) {
        (Some(_), Some(unfinished)) => Err(CliError::failure(anyhow::anyhow!(
            "{unfinished}, within drain_ms = {} after the measured time; raise it, or see in fct.csv \
             which they are",
            scenario.demand.drain_ms
        ))),
        _ => Ok(()),
    }
}

/// Returns the summary's fields at the top level, and the simulated policy, scenario and trace.
pub(super) fn result_json(
    policy: &Entrant,
    scenario: &Scenario,
    trace: &Trace,
    outcome: &Outcome,
) -> CliResult<Value> {
    let mut value = serde_json::to_value(&outcome.summary).or_failure()?;
    value["policy"] = json!(policy.name());
    value["scenario"] = json!(scenario.name);
    value["trace_seed"] = json!(trace.seed);
    Ok(value)
}

/// Returns the reason why a run with lossless packets has failed: a pause that did not end, or, with strict
/// losslessness, a lost lossless packet.
fn lossless_failure(scenario: &Scenario, outcome: &Outcome) -> Option<String> {
    if let Some(chain) = &outcome.stuck {
        return Some(format!(
            "a queue was paused for longer than pfc_watchdog_us = {}: {chain}; watchdog=drop discards \
             such queues",
            scenario.lossless.pfc_watchdog_us
        ));
    }
    let drop = outcome
        .first_lossless_drop
        .filter(|_| scenario.lossless.strict)?;
    Some(format!(
        "{} lossless packets were lost, the first at switch {} after {} ns, priority {}, which had come \
         by port {}; raise headroom_bytes",
        outcome.summary.drops_lossless,
        drop.switch.0,
        drop.at.as_ns(),
        drop.priority,
        drop.port
    ))
}

/// Describes flows that did not finish, those of a warm-up included.
fn unfinished(outcome: &Outcome) -> Option<String> {
    let unfinished = |record: &&FlowRecord| record.finish.is_none();
    let count = outcome.records.iter().filter(unfinished).count();
    let first = outcome.records.iter().find(unfinished)?;
    Some(format!(
        "{count} flows did not finish, the first of them is flow {}",
        first.spec.id
    ))
}

/// Returns a line about the in-cast flows, if there are any.
fn in_cast(s: &Summary) -> String {
    if !s.incast_mean_fct_ms.is_finite() {
        return String::new();
    }
    format!(
        "in-cast     mean {:.3}  p99 {:.3}   (flows that start as a group; slowdown mean {:.3}  \
         p99 {:.3})\n",
        s.incast_mean_fct_ms, s.incast_p99_fct_ms, s.incast_mean_slowdown, s.incast_p99_slowdown
    )
}

/// Returns a line about pauses, if some priority is lossless.
fn pauses(scenario: &Scenario, s: &Summary) -> String {
    if !scenario.has_lossless() {
        return String::new();
    }
    format!(
        "pauses      {} of {:.3} ms together, {} lossless packets lost; 99 % of the time lossless \
         packets take at most {:.1} % of a leaf's buffer, lossy ones {:.1} %\n",
        s.pauses,
        s.paused_ms,
        s.drops_lossless,
        s.p99_lossless_occupancy * 100.0,
        s.p99_lossy_occupancy * 100.0
    )
}

/// Describes the loss, if delivered packets are counted.
fn loss(s: &Summary) -> String {
    if !s.loss_per_delivered.is_finite() {
        return String::new();
    }
    let loss = s.loss_per_delivered;
    format!(", {loss:.5} data packets lost per delivered one")
}

/// Describes the results in words.
pub(super) fn describe(policy: &Entrant, scenario: &Scenario, s: &Summary) -> String {
    let or_dash = |value: f64| {
        if value.is_finite() {
            format!("{value:.3}")
        } else {
            "-".to_owned()
        }
    };
    format!(
        "{policy} on {scenario}: {completed} of {flows} flows completed in {simulated:.3} s simulated\n\
         FCT ms      mean {mean}  p50 {p50}  p95 {p95}  p99 {p99}\n\
         short       mean {short}  p99 {short99}   (at most 100 kB)\n\
         long        mean {long}   (at least 1 MB)\n\
         {incast}\
         slowdown    mean {slowdown}  short {short_slowdown}  long {long_slowdown}\n\
         drops       {drops} ({drops_data} data, {dropped} bytes), timeouts {timeouts}\n\
         {pauses}\
         buffer      at most {occupancy} bytes, 99 % of the time below {p99_occupancy:.1} %\n\
         queueing    99 % of the packets wait at most {p99_wait} µs\n\
         goodput     {goodput:.1} Mbit/s{loss}\n\
         speed       {forwarded} packets, {wall:.3} s, {rate:.2} M packets/s{decisions}",
        policy = visible(policy.name()),
        scenario = visible(&scenario.name),
        completed = s.completed,
        flows = s.flows,
        simulated = s.simulated_s,
        mean = or_dash(s.mean_fct_ms),
        p50 = or_dash(s.p50_fct_ms),
        p95 = or_dash(s.p95_fct_ms),
        p99 = or_dash(s.p99_fct_ms),
        short = or_dash(s.short_mean_fct_ms),
        short99 = or_dash(s.short_p99_fct_ms),
        long = or_dash(s.long_mean_fct_ms),
        incast = in_cast(s),
        slowdown = or_dash(s.mean_slowdown),
        short_slowdown = or_dash(s.short_mean_slowdown),
        long_slowdown = or_dash(s.long_mean_slowdown),
        drops = s.drops,
        drops_data = s.drops_data,
        dropped = s.dropped_bytes,
        timeouts = s.timeouts,
        pauses = pauses(scenario, s),
        occupancy = s.max_occupancy_bytes,
        p99_occupancy = s.p99_occupancy * 100.0,
        p99_wait = or_dash(s.p99_queueing_delay_us),
        goodput = s.goodput_bps * 1e-6,
        loss = loss(s),
        forwarded = s.packets_forwarded,
        wall = s.wall_s,
        rate = s.packets_per_s / 1e6,
        decisions = if s.decisions > 0 {
            format!(", {} decisions", s.decisions)
        } else {
            String::new()
        },
    )
}

/// Writes the files of a run except pfc.csv; `summary` is the content of summary.json, one JSON object, in which a class
/// without flows gives null.
pub(super) fn write_results(
    folder: &Path,
    trace: &Trace,
    outcome: &Outcome,
    timeline: bool,
    summary: &impl Serialize,
) -> CliResult {
    write_flows(&folder.join(FLOWS), trace, &outcome.records)?;
    write_switches(&folder.join(SWITCHES), &outcome.switches)?;
    save(&folder.join(SUMMARY), |out| {
        serde_json::to_writer_pretty(&mut *out, summary)?;
        writeln!(out)
    })?;
    match timeline {
        true => write_timeline(&folder.join(TIMELINE), &outcome.timeline),
        false => Ok(()),
    }
}

/// Writes one row per flow, in the order of the trace.
fn write_flows(path: &Path, trace: &Trace, records: &[FlowRecord]) -> CliResult {
    save(path, |out| {
        writeln!(
            out,
            "id,src,dst,start_ns,size_bytes,kind,query,finish_ns,fct_ns,slowdown,class,priority,\
             base_ns"
        )?;
        for record in records {
            let flow = &record.spec;
            let kind = trace.kind_name(flow);
            write!(
                out,
                "{},{},{},{},{},",
                flow.id,
                flow.src,
                flow.dst,
                flow.start.as_ns(),
                flow.size
            )?;
            write!(out, "{},{},", output::quoted(kind), flow.query)?;
            match (record.finish, record.fct, record.slowdown) {
                (Some(finish), Some(fct), Some(slowdown)) => {
                    write!(out, "{},{},{slowdown}", finish.as_ns(), fct.as_ns())?;
                }
                _ => write!(out, ",,")?,
            }
            let class = FlowClass::of(flow).name();
            write!(out, ",{class},{},", flow.priority)?;
            if let Some(base) = record.base {
                write!(out, "{}", base.as_ns())?;
            }
            writeln!(out)?;
        }
        Ok(())
    })
}

/// Writes one row per switch; without uplinks there is no throughput.
fn write_switches(path: &Path, rows: &[SwitchRow]) -> CliResult {
    save(path, |out| {
        write!(
            out,
            "switch,kind,buffer_bytes,drops,drops_unscheduled,marks,"
        )?;
        write!(out, "pushed_out,p50_occupancy,p95_occupancy,p99_occupancy,")?;
        writeln!(out, "p9999_occupancy,max_occupancy,uplink_throughput")?;
        for row in rows {
            write!(out, "{},{},{},", row.switch.0, row.kind, row.buffer_bytes)?;
            write!(out, "{},{},", row.drops, row.drops_unscheduled)?;
            write!(out, "{},{},", row.marks, row.pushed_out)?;
            write!(out, "{},{},", row.p50_occupancy, row.p95_occupancy)?;
            write!(out, "{},{},", row.p99_occupancy, row.p9999_occupancy)?;
            write!(out, "{},", row.max_occupancy)?;
            if row.uplink_throughput.is_finite() {
                write!(out, "{}", row.uplink_throughput)?;
            }
            writeln!(out)?;
        }
        Ok(())
    })
}

/// Writes one row per pause; a pause that has not ended has no end.
fn write_pauses(path: &Path, pauses: &[PfcInterval]) -> CliResult {
    save(path, |out| {
        writeln!(out, "switch,port,priority,from_ns,to_ns")?;
        for paused in pauses {
            write!(out, "{},{},", paused.switch.0, paused.port)?;
            write!(out, "{},{},", paused.priority, paused.from.as_ns())?;
            if let Some(to) = paused.to {
                write!(out, "{}", to.as_ns())?;
            }
            writeln!(out)?;
        }
        Ok(())
    })
}

/// Writes one row per port and instant.
fn write_timeline(path: &Path, rows: &[TimelineRow]) -> CliResult {
    save(path, |out| {
        writeln!(
            out,
            "t_ns,port,queue_bytes,threshold_bytes,occupancy_bytes,alpha,switch"
        )?;
        for row in rows {
            write!(out, "{},{},{},", row.t.as_ns(), row.port, row.queue_bytes)?;
            write!(out, "{},{},", row.threshold_bytes, row.occupancy_bytes)?;
            if row.alpha.is_finite() {
                write!(out, "{}", row.alpha)?;
            }
            writeln!(out, ",{}", row.switch.0)?;
        }
        Ok(())
    })
}

fn save(path: &Path, write: impl FnOnce(&mut BufWriter<File>) -> std::io::Result<()>) -> CliResult {
    let context = || format!("cannot write {}", path.display());
    let mut out = BufWriter::new(File::create(path).with_context(context).or_failure()?);
    write(&mut out)
        .and_then(|()| out.flush())
        .with_context(context)
        .or_failure()
}
