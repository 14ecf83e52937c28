//! Devices that may be missing, although they are built in.

use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Mutex, PoisonError};

use bufgym_util::input::condensed;
use burn::tensor::{Device, Tensor};

use super::{DeviceChoice, DeviceError, OpenDevice};

/// Opens a device with `acquire` and checks that it computes. This happens once in the life of a process, because wgpu
/// refuses a second time.
pub fn open(
    choice: DeviceChoice,
    acquire: impl FnOnce() -> Result<OpenDevice, String>,
) -> Result<OpenDevice, DeviceError> {
    static OPENED: Mutex<Vec<(DeviceChoice, OpenDevice)>> = Mutex::new(Vec::new());
    // The lock also keeps two calls from exchanging each other's panic hook.
    let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, device)) = opened.iter().find(|(earlier, _)| *earlier == choice) {
        return Ok(device.clone());
    }
    let device = without_panics(|| {
        let open = acquire()?;
        compute(&open.device)?;
        Ok(open)
    })
    .map_err(|reason| DeviceError::Unavailable {
        choice,
        reason: condensed(reason),
    })?;
    opened.push((choice, device.clone()));
    Ok(device)
}

/// Opens the adapter that wgpu prefers: a real graphics processor rather than one emulated in software.
#[cfg(feature = "wgpu")]
pub fn wgpu() -> Result<OpenDevice, String> {
    let opened = Device::wgpu_options().init_with_setup();
    let (device, setup) = opened.map_err(|error| error.to_string())?;
    let adapter = setup.adapter.get_info();
    Ok(OpenDevice {
        device,
        name: format!("{} ({})", adapter.name, adapter.backend),
    })
}

/// Opens the first device. It is created by the first tensor on it.
#[cfg(feature = "cuda")]
pub fn cuda() -> Result<OpenDevice, String> {
    Ok(OpenDevice {
        device: Device::cuda(0),
        name: "CUDA device 0".to_owned(),
    })
}

/// Adds up a product of matrices, all in numbers that every device represents exactly.
fn compute(device: &Device) -> Result<(), String> {
    const SIZE: usize = 16;
    let ones = Tensor::<2>::ones([SIZE, SIZE], device);
    let sum = ones.clone().matmul(ones).sum().into_scalar::<f32>();
    let right = (SIZE * SIZE * SIZE) as f32;
    if sum == right {
        Ok(())
    } else {
        Err(format!("it computes {sum} where {right} is right"))
    }
}

/// Runs `work`. A panic is an error with the text of the first panic of any thread, and nothing is
/// printed.
fn without_panics<T>(work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    let first = Arc::new(Mutex::new(None));
    let seen = Arc::clone(&first);
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        let text = panic
            .payload_as_str()
            .unwrap_or("its driver library panicked");
        let mut first = seen.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert_with(|| text.to_owned());
    }));
    let result = panic::catch_unwind(AssertUnwindSafe(work));
    panic::set_hook(usual);
    result.unwrap_or_else(|_| {
        let first = first.lock().unwrap_or_else(PoisonError::into_inner).take();
        Err(first.unwrap_or_else(|| "its driver library panicked".to_owned()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_of_a_driver_is_a_reason() {
        let reason = |work: fn() -> Result<(), String>| without_panics(work).unwrap_err();
        assert_eq!(reason(|| panic!("no library {}", 1)), "no library 1");
        assert_eq!(reason(|| Err("none found".to_owned())), "none found");
        // The driver's own thread panics first, and then the one that waits for it.
        let relayed = reason(|| {
            let thread = std::thread::spawn(|| panic!("no driver"));
            thread.join().map_err(|_| ()).unwrap();
            Ok(())
        });
        assert_eq!(relayed, "no driver");
        assert_eq!(without_panics(|| Ok(3)), Ok(3));
    }
}
