//! `bufgym trace`: a flow list as CSV: generated, from a packet capture, or from a list of another
//! simulator.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use bufgym::sim::traffic::{
    Capture, CaptureError, CaptureOptions, FlowFormat, ListOptions, Trace, TraceError,
};
use clap::{ArgGroup, Args};
use serde_json::{Value, json};

use super::Common;
use super::error::{CliError, CliResult, ResultExt as _};
use super::output::{Output, shown};
use super::scenario::{ScenarioArgs, TraceChoice};

/// Default of `--idle-ms`.
const IDLE_MS: u64 = 1_000;

/// Generate the flows of a scenario, or find those in a packet capture or another simulator's list, and
/// write them as CSV
#[derive(Args)]
#[command(group = ArgGroup::new("file"), after_help = "Examples:\n  \
    bufgym trace --scenario ndt-16x1g --seed 3 --out flows.csv\n  \
    bufgym trace --set flows=200..200 --set arrivals=synchronised --out flows.csv\n  \
    bufgym trace --from-pcap capture.pcapng --ports 16 --out flows.csv\n  \
    bufgym trace --from incast.cm --out flows.csv\n  \
    bufgym sim --policy dt --trace flows.csv")]
pub struct TraceArgs {
    #[command(flatten)]
    scenario: ScenarioArgs,
    #[command(flatten)]
    choice: TraceChoice,
    /// Packet capture (pcap or pcapng): every direction with payload becomes a flow
    #[arg(long, value_name = "FILE", group = "file",
        conflicts_with_all = ["scenario", "set", "index", "split"])]
    from_pcap: Option<PathBuf>,
    /// File with flows: a packet capture, a flow list of HPCC, a connection matrix of htsim, or CSV
    #[arg(long, value_name = "FILE", group = "file",
        conflicts_with_all = ["scenario", "set", "index", "split"])]
    from: Option<PathBuf>,
    /// Format of the file: csv, pcap, hpcc or htsim [default: as its content says]
    #[arg(long, value_name = "F", requires = "from")]
    format: Option<String>,
    /// Number of the first host in a list, which becomes host 0
    #[arg(long, value_name = "N", requires = "from")]
    host_offset: Option<u32>,
    /// A pause of a connection after which its payload is a new flow, milliseconds [default: 1000]
    #[arg(long, value_name = "MS", requires = "file",
        value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    idle_ms: Option<u64>,
    /// Switch ports: the hosts of the capture are dealt out to them in turn [default: one port for
    /// each host]
    #[arg(long, value_name = "N", requires = "file",
        value_parser = clap::value_parser!(u32).range(2..=4_096))]
    ports: Option<u32>,
    /// Take the flows between the ends of tunnels, not those within them
    #[arg(long, requires = "file")]
    outer: bool,
    /// Read a capture that ends within a packet up to there
    #[arg(long, requires = "file")]
    truncated: bool,
    /// File to write: id,src,dst,start_ns,size_bytes,kind,query,priority
    #[arg(long, value_name = "FLOWS.csv")]
    out: PathBuf,
    /// Replace the file if it exists
    #[arg(long)]
    force: bool,
}

/// Runs the command.
pub fn run(args: TraceArgs, common: &Common) -> CliResult {
    // A large file takes time: a bad output path is refused before it is read.
    let output = Output::file(&args.out, args.force)?;
    let (trace, mut value, text) = match args.from_pcap.as_ref().or(args.from.as_ref()) {
        None => generated(&args, common)?,
        Some(path) => found(path, &args, common)?,
    };
    output.write_file(|file| trace.to_writer(file).or_failure())?;
    if common.quiet && !common.json {
        return Ok(());
    }
    let bytes = trace.total_bytes();
    value["out"] = json!(args.out.to_string_lossy());
    value["flows"] = json!(trace.flows.len());
    // JSON has no whole numbers of more than 64 bits.
    let exact = u64::try_from(bytes).map(|bytes| json!(bytes));
    value["bytes"] = exact.unwrap_or(json!(bytes as f64));
    let text = format!(
        "{}: {} flows, {:.1} MB, {text}",
        shown(&args.out),
        trace.flows.len(),
        bytes as f64 / 1e6
    );
    common.print(&value, &text)
}

fn generated(args: &TraceArgs, common: &Common) -> CliResult<(Trace, Value, String)> {
    let scenario = args.scenario.resolve_any()?;
    let trace = args.choice.generate(&scenario, common.seed())?;
    trace.validate(scenario.network.ports).or_bad_input()?;
    let value = json!({
        "trace_seed": trace.seed,
        "scenario": scenario.name,
        "split": args.choice.split,
        "index": args.choice.index,
        "seed": common.seed(),
    });
    let text = format!("trace seed {}", trace.seed);
    Ok((trace, value, text))
}

/// Reads the flows of a file.
fn found(path: &Path, args: &TraceArgs, common: &Common) -> CliResult<(Trace, Value, String)> {
    let flag = match args.from_pcap {
        Some(_) => "--from-pcap",
        None => "--from",
    };
    if common.seed.is_some() {
        return Err(CliError::bad(format!(
            "--seed cannot be used with {flag}: nothing is random in a file"
        )));
    }
    let given = match &args.format {
        _ if args.from_pcap.is_some() => Some(FlowFormat::Pcap),
        Some(format) => Some(format.parse().map_err(CliError::input)?),
        None => None,
    };
    let opened = File::open(path).and_then(FlowFormat::detect);
    let (content, reader) = opened.map_err(|source| {
        let (path, action) = (path.to_owned(), "read");
        match args.from_pcap {
            Some(_) => CliError::input(CaptureError::Io { path, source }),
            None => CliError::input(TraceError::Io {
                path,
                action,
                source,
            }),
        }
    })?;
    let format = given.unwrap_or(content);
    let origin = path.display().to_string();
    let strange = match format {
        FlowFormat::Pcap => args.host_offset.map(|_| "--host-offset"),
        _ => [
            (args.idle_ms.is_some(), "--idle-ms"),
            (args.ports.is_some(), "--ports"),
            (args.outer, "--outer"),
            (args.truncated, "--truncated"),
        ]
        .into_iter()
        .find_map(|(is_given, flag)| is_given.then_some(flag)),
    };
    match (strange, format) {
        (Some(flag), FlowFormat::Pcap) => Err(CliError::bad(format!(
            "{flag} cannot be used with a packet capture: hosts are numbered as they first appear"
        ))),
        (Some(flag), _) => Err(CliError::bad(format!(
            "{flag} is for packet captures; {origin} is read as {format}"
        ))),
        (None, FlowFormat::Pcap) => captured(
            BufReader::with_capacity(1 << 18, reader),
            &origin,
            args,
            common,
        ),
        (None, format) => listed(reader, &origin, format, args),
    }
}

/// Reads the flows of a list.
fn listed(
    reader: impl Read,
    origin: &str,
    format: FlowFormat,
    args: &TraceArgs,
) -> CliResult<(Trace, Value, String)> {
    let options = ListOptions {
        format: Some(format),
        host_offset: args.host_offset.unwrap_or(0),
        ..ListOptions::default()
    };
    let trace = Trace::list_from_reader(reader, origin, &options).or_bad_input()?;
    let hosts = trace.flows.iter().map(|flow| flow.src.max(flow.dst));
    let ports = hosts.max().map_or(0, |last| u64::from(last) + 1);
    let text = format!("from a list ({format}); simulate it with --set ports={ports}");
    let value = json!({
        "list": origin,
        "format": format.name(),
        "host_offset": options.host_offset,
        "ports": ports,
    });
    Ok((trace, value, text))
}

/// Reads the flows of a packet capture.
fn captured(
    reader: impl Read,
    origin: &str,
    args: &TraceArgs,
    common: &Common,
) -> CliResult<(Trace, Value, String)> {
    let idle_ms = args.idle_ms.unwrap_or(IDLE_MS);
    let options = CaptureOptions {
        idle: Duration::from_millis(idle_ms),
        ports: args.ports,
        outer: args.outer,
        truncated: args.truncated,
    };
    let capture = Capture::from_reader(reader, origin, &options).or_bad_input()?;
    if !common.json {
        for note in notes(&capture, &options) {
            common.note(note);
        }
    }
    let text = format!(
        "from {} packets of {} hosts; simulate it with --set ports={}",
        capture.packets,
        capture.hosts.len(),
        capture.ports
    );
    let value = json!({
        "capture": origin,
        "idle_ms": idle_ms,
        "packets": capture.packets,
        "hosts": capture.hosts.len(),
        "addresses": capture.hosts,
        "ports": capture.ports,
        "skipped": capture.skipped,
        "tunnels": capture.tunnels,
        "outer": args.outer,
        "copies": capture.copies,
        "blocks": capture.blocks,
        "cut_short": capture.cut_short,
    });
    Ok((capture.trace, value, text))
}

/// Returns notes about the capture for readers of the flow list.
fn notes(capture: &Capture, options: &CaptureOptions) -> Vec<String> {
    let mut notes = Vec::new();
    if capture.cut_short {
        notes.push(format!(
            "the file ends within a packet; the {} before it were read",
            capture.packets
        ));
    }
    let tunnels = capture.tunnels.to_string();
    if !tunnels.is_empty() {
        notes.push(match (options.outer, capture.tunnels.have_ends()) {
            (true, true) => {
                format!("packets in tunnels: {tunnels}; the flows are those between the tunnels' ends")
            }
            (false, true) => format!(
                "packets in tunnels: {tunnels}; the flows are those within the tunnels, --outer takes \
                 those between the tunnels' ends"
            ),
            (_, false) => format!("packets in tunnels: {tunnels}; the flows are those within them"),
        });
    }
    if capture.copies > 0 {
        notes.push(format!(
            "UDP packets that were captured again within 1 ms, and are counted once: {}",
            capture.copies
        ));
    }
    if capture.skipped.total() > 0 {
        notes.push(format!("packets in no flow: {}", capture.skipped));
    }
    if !capture.blocks.is_empty() {
        let blocks = capture.blocks.iter();
        let blocks: Vec<_> = blocks
            .map(|(name, count)| format!("{count} {name}"))
            .collect();
        notes.push(format!(
            "blocks passed over, not packets: {}",
            blocks.join(", ")
        ));
    }
    notes
}
