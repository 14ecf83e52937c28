//! The files of a simulation. Times are whole nanoseconds; a field without a value is empty.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::Context as _;
use bufgym::sim::network::{FlowRecord, Summary, TimelineRow};
use bufgym::sim::traffic::Trace;

use crate::cli::error::{CliResult, ResultExt as _};

/// One row per flow, in the order of the trace.
pub fn write_flows(path: &Path, trace: &Trace, records: &[FlowRecord]) -> CliResult {
    save(path, |out| {
        writeln!(
            out,
            "id,src,dst,start_ns,size_bytes,kind,query,finish_ns,fct_ns,slowdown"
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
            write!(out, "{},{},", quoted(kind), flow.query)?;
            match (record.finish, record.fct, record.slowdown) {
                (Some(finish), Some(fct), Some(slowdown)) => {
                    writeln!(out, "{},{},{slowdown}", finish.as_ns(), fct.as_ns())?;
                }
                _ => writeln!(out, ",,")?,
            }
        }
        Ok(())
    })
}

/// The summary as one JSON object; a class without flows gives null.
pub fn write_summary(path: &Path, summary: &Summary) -> CliResult {
    save(path, |out| {
        serde_json::to_writer_pretty(&mut *out, summary)?;
        writeln!(out)
    })
}

/// One row per port and instant.
pub fn write_timeline(path: &Path, rows: &[TimelineRow]) -> CliResult {
    save(path, |out| {
        writeln!(
            out,
            "t_ns,port,queue_bytes,threshold_bytes,occupancy_bytes,alpha"
        )?;
        for row in rows {
            write!(out, "{},{},{},", row.t.as_ns(), row.port, row.queue_bytes)?;
            write!(out, "{},{},", row.threshold_bytes, row.occupancy_bytes)?;
            if row.alpha.is_finite() {
                write!(out, "{}", row.alpha)?;
            }
            writeln!(out)?;
        }
        Ok(())
    })
}

/// A kind's name is free text from a file, so it may hold what CSV must quote (RFC 4180 §2).
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

fn save(path: &Path, write: impl FnOnce(&mut BufWriter<File>) -> std::io::Result<()>) -> CliResult {
    let context = || format!("cannot write {}", path.display());
    let mut out = BufWriter::new(File::create(path).with_context(context).or_failure()?);
    write(&mut out)
        .and_then(|()| out.flush())
        .with_context(context)
        .or_failure()
}
