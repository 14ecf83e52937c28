//! The options of `bufgym sonic-agent`. Two programs have this file: `bufgym`, which checks the options and explains
//! them, and `bufgym-sonic-agent`, which `bufgym` runs with them.

use std::path::PathBuf;

use clap::Args;

/// Set the buffer profiles of a switch with SONiC by a learned policy
#[derive(Args)]
#[command(
    after_help = "Counters come from COUNTERS_DB; profiles go to CONFIG_DB, and the old ones come back at the end. \
    docs/sonic.md has all of it.\n\nExamples:\n  \
    bufgym sonic-agent --redis unix:/var/run/redis/redis.sock --checkpoint checkpoints/ndt-fct-dt --dry-run\n  \
    bufgym sonic-agent --redis 127.0.0.1:6379 --checkpoint checkpoints/ndt-fct-dt --min-interval-ms 5000\n  \
    bufgym sonic-agent --redis unix:/var/run/redis/redis.sock --restore"
)]
pub struct SonicAgentArgs {
    /// Redis of the switch: unix:/PATH or HOST:PORT
    #[arg(long, value_name = "ADDRESS")]
    pub redis: String,
    /// User of Redis, where its access control list has users [default: the default user]
    #[arg(long, value_name = "NAME")]
    pub redis_user: Option<String>,
    /// File with the password of Redis, one line [default: the variable BUFGYM_REDIS_PASSWORD, or none]
    #[arg(long, value_name = "FILE")]
    pub redis_password_file: Option<PathBuf>,
    /// Checkpoint folder of a network that sets the alpha of Dynamic Threshold alone
    #[arg(long, value_name = "DIR", required_unless_present = "restore")]
    pub checkpoint: Option<PathBuf>,
    /// Write nothing; print what would be written
    #[arg(long, conflicts_with = "restore")]
    pub dry_run: bool,
    /// Put back what an agent that was killed has left, and end
    #[arg(long, conflicts_with = "checkpoint")]
    pub restore: bool,
    /// Ports to control, with commas between them [default: all that are up and have a queue in the pool]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub ports: Vec<String>,
    /// Buffer pool whose queues are controlled
    #[arg(long, value_name = "NAME", default_value = "egress_lossy_pool")]
    pub pool: String,
    /// Size of the pool, bytes [default: as in the databases]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(1..))]
    pub buffer_bytes: Option<u64>,
    /// Counters of what was sent and lost: queue or port
    #[arg(long, value_name = "SOURCE", default_value = "queue", value_parser = source)]
    pub counters: String,
    /// Time between readings of the databases, ms
    #[arg(long, value_name = "MS", default_value = "1000", value_parser = clap::value_parser!(u64).range(1..=60_000))]
    pub poll_ms: u64,
    /// Shortest time between decisions, and so between writes to a queue, ms
    #[arg(long, value_name = "MS", default_value = "1000", value_parser = clap::value_parser!(u64).range(0..=3_600_000))]
    pub min_interval_ms: u64,
    /// Longest time between decisions, ms; 0: off
    #[arg(long, value_name = "MS", default_value = "0", value_parser = clap::value_parser!(u64).range(0..=3_600_000))]
    pub max_interval_ms: u64,
    /// Without new counters for so long, the old profiles come back, ms
    #[arg(long, value_name = "MS", default_value = "30000", value_parser = clap::value_parser!(u64).range(1..=3_600_000))]
    pub stale_ms: u64,
    /// Largest dynamic_th that the switch takes
    #[arg(long, value_name = "N", default_value = "5", allow_negative_numbers = true, value_parser = clap::value_parser!(i8).range(-2..=5))]
    pub max_dynamic_th: i8,
    /// End after so long, s [default: at Ctrl-C]
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(1..))]
    pub for_s: Option<u64>,
}

/// Checks the name of a source of counters.
fn source(text: &str) -> Result<String, String> {
    match text {
        "queue" | "port" => Ok(text.to_owned()),
        _ => Err("must be queue or port".to_owned()),
    }
}
