//! Signals that end a program: the first asks to stop at the next safe point, the second ends at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::error::{CliResult, ResultExt as _};

/// Exit code of a program ended by SIGINT, as shells report it.
const EXIT_INTERRUPTED: i32 = 130;

/// A flag that the first SIGINT, SIGTERM or SIGHUP sets. What was saved before a second signal stays
/// valid, because every checkpoint is renamed into place when it is complete. A SIGHUP that was
/// ignored when the program began, as under `nohup`, stays ignored.
///
/// # Errors
/// When the operating system refuses the handler.
pub fn stop_flag(announcement: &'static str) -> CliResult<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&stop);
    let mut handled = vec![SIGINT, SIGTERM];
    if !is_ignored(SIGHUP) {
        handled.push(SIGHUP);
    }
    let mut signals = Signals::new(handled).or_failure()?;
    std::thread::spawn(move || {
        for _ in signals.forever() {
            if seen.swap(true, Ordering::SeqCst) {
                std::process::exit(EXIT_INTERRUPTED);
            }
            super::say(announcement);
        }
    });
    Ok(stop)
}

/// Whether a signal is ignored, as the kernel says; no where it does not say so, as outside Linux.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}
