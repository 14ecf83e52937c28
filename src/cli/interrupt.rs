//! Signals that end a program: the first asks to stop at the next safe point, the second ends at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::error::{CliResult, ResultExt as _};

/// Offset from signal numbers to exit codes, as in shells.
const EXIT_SIGNAL: i32 = 128;

/// The request of the first SIGINT, SIGTERM or SIGHUP.
#[derive(Default)]
pub struct Stop {
    flag: AtomicBool,
    signal: AtomicI32,
}

impl Stop {
    /// Returns the flag that the signal sets.
    pub fn flag(&self) -> &AtomicBool {
        &self.flag
    }

    /// Returns 128 plus the number of the signal: 130 for Ctrl-C.
    pub fn exit_code(&self) -> u8 {
        let code = EXIT_SIGNAL + self.signal.load(Ordering::SeqCst);
        u8::try_from(code).unwrap_or(u8::MAX)
    }
}

/// Asks the work to stop at the first SIGINT, SIGTERM or SIGHUP. Checkpoints saved before a second signal
/// stay valid, because every checkpoint is renamed into place when it is complete. A SIGHUP that was ignored
/// when the program began, like under `nohup`, stays ignored.
///
/// # Errors
/// Fails if the operating system refuses the handler.
pub fn stop_at_signal(announcement: &'static str) -> CliResult<Arc<Stop>> {
    let stop = Arc::new(Stop::default());
    let seen = Arc::clone(&stop);
    let mut handled = vec![SIGINT, SIGTERM];
    if !is_ignored(SIGHUP) {
        handled.push(SIGHUP);
    }
    let mut signals = Signals::new(handled).or_failure()?;
    std::thread::spawn(move || {
        for signal in signals.forever() {
            if seen.flag.load(Ordering::SeqCst) {
                std::process::exit(EXIT_SIGNAL + signal);
            }
            seen.signal.store(signal, Ordering::SeqCst);
            seen.flag.store(true, Ordering::SeqCst);
            super::say(announcement);
        }
    });
    Ok(stop)
}

/// Returns true if the kernel says that a signal is ignored; false if it does not say so, like outside Linux.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}
