//! Ctrl-C and SIGTERM: the first asks to stop at the next safe point, the second ends at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::error::{CliResult, ResultExt as _};

/// Exit code of a program ended by SIGINT, as shells report it.
const EXIT_INTERRUPTED: i32 = 130;

/// A flag that the first signal sets. What was saved before a second signal stays valid, because
/// every checkpoint is renamed into place when it is complete.
///
/// # Errors
/// When the operating system refuses the handler.
pub fn stop_flag(announcement: &'static str) -> CliResult<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&stop);
    ctrlc::set_handler(move || {
        if seen.swap(true, Ordering::SeqCst) {
            std::process::exit(EXIT_INTERRUPTED);
        }
        eprintln!("{announcement}");
    })
    .or_failure()?;
    Ok(stop)
}
