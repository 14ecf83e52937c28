//! Long computations that Ctrl-C interrupts.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use pyo3::prelude::*;

use crate::failure::broken;

/// Interval between checks whether Python has been interrupted.
const PATIENCE: Duration = Duration::from_millis(50);

/// Runs `work` on a separate thread and waits for it. If a signal's handler raises an exception, such as
/// `KeyboardInterrupt`, this sets the flag of `work`, raises the exception, and leaves the thread to end
/// later. So the caller never waits for a running simulation.
pub fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    stop: &Arc<AtomicBool>,
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    let (sender, mut receiver) = channel::<Result<T, Box<dyn Any + Send>>>();
    std::thread::spawn(move || {
        let result = catch_unwind(AssertUnwindSafe(work));
        // After an interruption, nobody waits for the result any more.
        let _ = sender.send(result);
    });
    loop {
        let waited = py.detach(move || {
            let result = receiver.recv_timeout(PATIENCE);
            (receiver, result)
        });
        receiver = waited.0;
        match waited.1 {
            Ok(Ok(result)) => return Ok(result),
            Ok(Err(panic)) => return Err(broken(panic.as_ref())),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(broken(&"the thread has gone")),
        }
        if let Err(interruption) = py.check_signals() {
            stop.store(true, Ordering::SeqCst);
            return Err(interruption);
        }
    }
}
