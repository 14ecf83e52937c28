//! Long work that Ctrl-C ends.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use pyo3::prelude::*;

use crate::failure::broken;

/// How often Python is asked whether it has been interrupted.
const PATIENCE: Duration = Duration::from_millis(50);

/// Does `work` on a thread of its own and waits for it. When a signal's handler raises an exception, such
/// as `KeyboardInterrupt`, the flag that `work` was given is set, the exception raised, and the thread left
/// to find its end; so the caller never waits for a simulation that is under way.
pub fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    stop: &Arc<AtomicBool>,
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    let (sender, mut receiver) = channel::<Result<T, Box<dyn Any + Send>>>();
    std::thread::spawn(move || {
        let result = catch_unwind(AssertUnwindSafe(work));
        // Nobody waits for it any more after an interruption.
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
