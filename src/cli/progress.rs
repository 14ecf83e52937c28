//! Progress bars on standard error.

use indicatif::{ProgressBar, ProgressStyle};

use super::Common;

/// Returns a progress bar over simulations, hidden with `--quiet`.
pub fn progress_bar(common: &Common) -> ProgressBar {
    if common.quiet {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(0);
    if let Ok(style) =
        ProgressStyle::with_template("{bar:40} {pos}/{len} simulations, {eta} left {msg}")
    {
        bar.set_style(style);
    }
    bar
}
