//! The boundary to the runtime: a panic inside it becomes an error outside, and prints nothing.

use std::any::Any;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use tract_onnx::prelude::{TractError, TractResult};

thread_local! {
    /// True while this thread is inside the runtime.
    static BEYOND: Cell<bool> = const { Cell::new(false) };
}

/// Suppresses the output of panics of threads that are inside the runtime. All others are printed as before.
fn silence() {
    static SILENCED: Once = Once::new();
    SILENCED.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if !BEYOND.get() {
                usual(panic);
            }
        }));
    });
}

/// Calls the runtime. Values that `work` changes must not be used after an error.
///
/// # Errors
/// Returns the errors of `work`, and the message of its panic.
pub(crate) fn caught<T>(work: impl FnOnce() -> TractResult<T>) -> TractResult<T> {
    silence();
    let outer = BEYOND.replace(true);
    let result = panic::catch_unwind(AssertUnwindSafe(work));
    BEYOND.set(outer);
    result.unwrap_or_else(|panic| {
        Err(TractError::msg(format!(
            "the runtime fails ({}); check the file with onnx.checker and export the network again",
            message(panic.as_ref())
        )))
    })
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without a message")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_and_the_thread_goes_on() {
        let inner: TractResult<()> = caught(|| {
            let inner: TractResult<()> = caught(|| panic!("inside"));
            assert!(BEYOND.get());
            inner
        });
        let text = inner.unwrap_err().to_string();
        assert!(text.contains("inside"), "{text}");
        assert!(!BEYOND.get());
        assert_eq!(caught(|| Ok(7)).unwrap(), 7);
    }
}
