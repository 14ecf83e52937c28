//! `bufgym trace`: a flow list as CSV, generated or from a packet capture.

use std::path::{Path, PathBuf};
use std::time::Duration;

use bufgym::sim::traffic::{Capture, CaptureOptions, Trace};
use clap::Args;
use serde_json::{Value, json};

use super::Common;
use super::error::{CliError, CliResult, ResultExt as _};
use super::output::{Output, shown};
use super::scenario::{ScenarioArgs, TraceChoice};

/// Generate the flows of a scenario, or find those in a packet capture, and write them as CSV
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    bufgym trace --scenario ndt-16x1g --seed 3 --out flows.csv\n  \
    bufgym trace --set flows=200..200 --set arrivals=synchronised --out flows.csv\n  \
    bufgym trace --from-pcap capture.pcapng --ports 16 --out flows.csv\n  \
    bufgym sim --policy dt --trace flows.csv")]
pub struct TraceArgs {
    #[command(flatten)]
    scenario: ScenarioArgs,
    #[command(flatten)]
    choice: TraceChoice,
    /// Packet capture (pcap or pcapng): every direction with payload becomes a flow
    #[arg(long, value_name = "FILE", conflicts_with_all = ["scenario", "set", "index", "split"])]
    from_pcap: Option<PathBuf>,
    /// A pause of a connection after which its payload is a new flow, milliseconds
    #[arg(long, value_name = "MS", default_value_t = 1_000, requires = "from_pcap",
        value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    idle_ms: u64,
    /// Switch ports: the hosts of the capture are dealt out to them in turn [default: one port for
    /// each host]
    #[arg(long, value_name = "N", requires = "from_pcap",
        value_parser = clap::value_parser!(u32).range(2..=4_096))]
    ports: Option<u32>,
    /// Take the flows between the ends of tunnels, not those within them
    #[arg(long, requires = "from_pcap")]
    outer: bool,
    /// Read a capture that ends within a packet up to there
    #[arg(long, requires = "from_pcap")]
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
    let output = Output::file(&args.out, args.force)?;
    let (trace, mut value, text) = match &args.from_pcap {
        None => generated(&args, common)?,
        Some(path) => captured(path, &args, common)?,
    };
    output.write_file(|file| trace.to_writer(file).or_failure())?;
    if common.quiet && !common.json {
        return Ok(());
    }
    let bytes = trace.total_bytes();
    if let Value::Object(fields) = &mut value {
        fields.insert("out".to_owned(), json!(args.out.to_string_lossy()));
        fields.insert("flows".to_owned(), json!(trace.flows.len()));
        // JSON has no whole numbers of more than 64 bits.
        let exact = u64::try_from(bytes).map(|bytes| json!(bytes));
        fields.insert("bytes".to_owned(), exact.unwrap_or(json!(bytes as f64)));
    }
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
    trace.validate(scenario.ports).or_bad_input()?;
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

fn captured(path: &Path, args: &TraceArgs, common: &Common) -> CliResult<(Trace, Value, String)> {
    if common.seed.is_some() {
        return Err(CliError::bad(
            "--seed cannot be used with --from-pcap: nothing is random in a capture",
        ));
    }
    let options = CaptureOptions {
        idle: Duration::from_millis(args.idle_ms),
        ports: args.ports,
        outer: args.outer,
        truncated: args.truncated,
    };
    let capture = Capture::read(path, &options).or_bad_input()?;
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
        "capture": path.to_string_lossy(),
        "idle_ms": args.idle_ms,
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

/// What a reader of the flow list should know about the capture.
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
        let blocks: Vec<_> = blocks.map(|(name, count)| format!("{count} {name}")).collect();
        notes.push(format!("blocks passed over, not packets: {}", blocks.join(", ")));
    }
    notes
}
