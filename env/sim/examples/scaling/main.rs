//! Measures and draws the cost per packet against the number of ports and of concurrent flows.
//!
//! `cargo run --release -p bufgym-sim --example scaling -- [FOLDER]` writes `scaling.svg` and its
//! numbers, `figures/scaling.csv`, into `docs` or the folder. With `--draw` it measures nothing and
//! draws the existing numbers.

mod draw;
mod load;

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use load::{FLOWS, Load, PORTS, forward};

type Failure = Box<dyn std::error::Error>;

const PACKETS: u64 = 200_000;
const ROUNDS: usize = 9;

/// A curve: number of ports or flows, and nanoseconds per packet.
type Curve = Vec<(f64, f64)>;

fn main() -> Result<(), Failure> {
    let (flags, folders): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|word| word == "--draw");
    let folder = PathBuf::from(folders.first().map_or("docs", String::as_str));
    let numbers = folder.join("figures/scaling.csv");
    if flags.is_empty() {
        let curves = [
            ("ports", curve("ports", &PORTS, Load::of_ports)),
            ("flows", curve("flows", &FLOWS, Load::of_flows)),
        ];
        fs::create_dir_all(folder.join("figures"))?;
        fs::write(&numbers, table(&curves)?)?;
    }
    let text = fs::read_to_string(&numbers)?;
    let path = folder.join("scaling.svg");
    fs::write(
        &path,
        draw::both(&read(&text, "ports")?, &read(&text, "flows")?)?,
    )?;
    println!("{}", path.display());
    Ok(())
}

/// Returns the curves as CSV.
fn table(curves: &[(&str, Curve)]) -> Result<String, Failure> {
    let mut text = "of,count,ns_per_packet\n".to_owned();
    for (of, curve) in curves {
        for (count, ns) in curve {
            writeln!(text, "{of},{count},{ns:.1}")?;
        }
    }
    Ok(text)
}

/// Reads the curve `of` from a table.
fn read(text: &str, of: &str) -> Result<Curve, Failure> {
    let mut curve = Vec::new();
    for row in text.lines().skip(1) {
        let fields: Vec<&str> = row.split(',').collect();
        let &[name, count, ns] = fields.as_slice() else {
            return Err(format!("not of,count,ns_per_packet: {row}").into());
        };
        if name == of {
            curve.push((count.parse()?, ns.parse()?));
        }
    }
    Ok(curve)
}

/// Returns the minimum of several rounds, taken in turn, so that other work on the machine affects
/// neither the values nor their order.
fn curve(name: &str, values: &[u32], load: impl Fn(u32) -> Load) -> Curve {
    let mut simulators: Vec<_> = values
        .iter()
        .map(|&value| load(value).simulator())
        .collect();
    let mut least = vec![f64::INFINITY; values.len()];
    for _ in 0..ROUNDS {
        for (simulator, least) in simulators.iter_mut().zip(&mut least) {
            let started = Instant::now();
            forward(simulator, PACKETS);
            *least = least.min(started.elapsed().as_secs_f64() * 1e9 / PACKETS as f64);
        }
    }
    for (value, ns) in values.iter().zip(&least) {
        println!("{value:>7} {name}: {ns:.0} ns per packet");
    }
    values
        .iter()
        .map(|&value| f64::from(value))
        .zip(least)
        .collect()
}
