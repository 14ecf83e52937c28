//! Comparison of the memory that a computation needs with the memory that is available.
//!
//! An estimate counts only the memory that certainly grows with the settings. So a computation that is
//! refused would not have fitted, and one that passes may still need slightly more than is available.

use std::fmt;
use std::fs;

/// Memory that a computation needs, part by part.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Estimate {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq)]
struct Part {
    what: &'static str,
    lower: &'static str,
    bytes: u64,
}

/// Error for a computation that does not fit into the memory.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error(
    "this needs at least {} of memory, and {} are available; {} are for {what}: lower {lower}",
    Bytes(*.needed), Bytes(*.available), Bytes(*.largest)
)]
pub struct TooMuch {
    /// Estimated need, bytes.
    pub needed: u64,
    /// Available memory, bytes.
    pub available: u64,
    /// Size of the largest part, bytes.
    pub largest: u64,
    /// Purpose of the largest part.
    pub what: &'static str,
    /// Setting to lower.
    pub lower: &'static str,
}

impl Estimate {
    /// Adds a part of `bytes` for the purpose `what`. `lower` names the setting that shrinks the part when it is
    /// lowered.
    #[must_use]
    pub fn with(mut self, what: &'static str, lower: &'static str, bytes: u64) -> Estimate {
        self.parts.push(Part { what, lower, bytes });
        self
    }

    /// Returns the sum of the parts, bytes.
    pub fn total(&self) -> u64 {
        let bytes = self.parts.iter().map(|part| part.bytes);
        bytes.fold(0, u64::saturating_add)
    }

    /// Checks that the computation fits into the memory that this process can still get. Always passes if the
    /// system does not tell how much that is.
    ///
    /// # Errors
    /// [`TooMuch`], with the largest part.
    pub fn check(&self) -> Result<(), TooMuch> {
        available().map_or(Ok(()), |available| self.check_against(available))
    }

    fn check_against(&self, available: u64) -> Result<(), TooMuch> {
        let needed = self.total();
        match self.parts.iter().max_by_key(|part| part.bytes) {
            Some(largest) if needed > available => Err(TooMuch {
                needed,
                available,
                largest: largest.bytes,
                what: largest.what,
                lower: largest.lower,
            }),
            _ => Ok(()),
        }
    }
}

/// A number of bytes in a readable unit.
struct Bytes(u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u64, &str); 4] = [
            (1_000_000_000_000, "TB"),
            (1_000_000_000, "GB"),
            (1_000_000, "MB"),
            (1_000, "kB"),
        ];
        match UNITS.into_iter().find(|(unit, _)| self.0 >= *unit) {
            // Tenths of a unit, without a detour over floating point.
            Some((unit, name)) => {
                let tenths = self.0 / (unit / 10);
                write!(f, "{}.{} {name}", tenths / 10, tenths % 10)
            }
            None => write!(f, "{} bytes", self.0),
        }
    }
}

/// Returns the memory that this process can still get, bytes. This is the minimum of the memory that Linux
/// calls available, the rest in the control groups of the process, and the rest in its limit of address
/// space. `None` if nothing is known.
pub fn available() -> Option<u64> {
    let read = |path: &str| fs::read_to_string(path).ok();
    let of_machine = read("/proc/meminfo").and_then(|text| kibibytes(&text, "MemAvailable:"));
    let groups = read("/proc/self/cgroup").unwrap_or_default();
    let of_groups = groups.lines().filter_map(|line| left_in_group(line, &read));
    let used = read("/proc/self/status").and_then(|text| kibibytes(&text, "VmSize:"));
    let limit = read("/proc/self/limits").and_then(|text| address_space(&text));
    let of_limit = limit
        .zip(used)
        .map(|(limit, used)| limit.saturating_sub(used));
    of_groups.chain(of_machine).chain(of_limit).min()
}

/// Returns the peak size of this process in memory since its start, or since [`forget_peak`], bytes. `None`
/// if the system does not tell.
pub fn peak() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    kibibytes(&status, "VmHWM:")
}

/// Resets the [peak], where the system allows it.
pub fn forget_peak() {
    // A system without this file reports the peak since the start of the process.
    let _ = fs::write("/proc/self/clear_refs", "5");
}

/// Returns the value of a line such as `MemAvailable:  123 kB`, in bytes.
fn kibibytes(text: &str, field: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(field))?;
    let number: u64 = line.split_whitespace().next()?.parse().ok()?;
    number.checked_mul(1_024)
}

/// Returns the soft limit of address space in `/proc/self/limits`, bytes; `None` for `unlimited`.
fn address_space(text: &str) -> Option<u64> {
    let limits = text
        .lines()
        .find_map(|line| line.strip_prefix("Max address space"))?;
    limits.split_whitespace().next()?.parse().ok()
}

/// Returns the memory that the group in a line of `/proc/self/cgroup` leaves, bytes; `None` for groups without
/// a memory limit. A container sees its own group as the root of the file system.
fn left_in_group(line: &str, read: &dyn Fn(&str) -> Option<String>) -> Option<u64> {
    let mut fields = line.splitn(3, ':');
    let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
    let (root, limit, usage, cache) = match controllers {
        "" => ("", "memory.max", "memory.current", "inactive_file"),
        "memory" => (
            "/memory",
            "memory.limit_in_bytes",
            "memory.usage_in_bytes",
            "total_inactive_file",
        ),
        _ => return None,
    };
    let own = format!("/sys/fs/cgroup{root}{path}");
    let number = |text: String| text.trim().parse::<u64>().ok();
    [own, format!("/sys/fs/cgroup{root}")]
        .into_iter()
        .find_map(|folder| {
            let limit = read(&format!("{folder}/{limit}")).and_then(number)?;
            let usage = read(&format!("{folder}/{usage}")).and_then(number)?;
            // Cached files are evicted when a process needs memory.
            let cached = read(&format!("{folder}/memory.stat"))
                .and_then(|text| counter(&text, cache))
                .unwrap_or(0);
            Some(limit.saturating_sub(usage.saturating_sub(cached)))
        })
}

/// Returns the value of a line `name value`.
fn counter(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let (found, value) = line.split_once(' ')?;
        (found == name).then(|| value.trim().parse().ok()).flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Written memory of 64 MB counts towards the peak.
    #[test]
    #[cfg(target_os = "linux")]
    fn the_peak_rises_with_what_is_used() {
        forget_peak();
        let before = peak().unwrap();
        let used = vec![1u8; 64_000_000];
        assert_eq!(
            used.iter().map(|&byte| u64::from(byte)).sum::<u64>(),
            64_000_000
        );
        // Other tests may release memory meanwhile.
        assert!(peak().unwrap() >= before.max(64_000_000));
    }

    #[test]
    fn what_does_not_fit_is_refused_with_its_largest_part() {
        let estimate = Estimate::default()
            .with("the traces", "--traces", 300)
            .with("the replay", "learner.replay_capacity", 700_000_000);
        assert_eq!(estimate.total(), 700_000_300);
        assert_eq!(estimate.check_against(700_000_300), Ok(()));
        let error = estimate.check_against(1_234).unwrap_err();
        assert_eq!(
            error.to_string(),
            "this needs at least 700.0 MB of memory, and 1.2 kB are available; 700.0 MB are for the \
             replay: lower learner.replay_capacity"
        );
        assert_eq!(Estimate::default().check_against(0), Ok(()));
    }

    #[test]
    fn parts_beyond_64_bits_add_up_to_too_much() {
        let estimate = Estimate::default()
            .with("a", "x", u64::MAX)
            .with("b", "y", u64::MAX);
        let error = estimate.check_against(u64::MAX - 1).unwrap_err();
        assert!(error.to_string().contains("18446744.0 TB"), "{error}");
    }

    #[test]
    fn the_limits_of_the_system_are_read() {
        let meminfo = "MemTotal:  100 kB\nMemFree: 1 kB\nMemAvailable:    7 kB\n";
        assert_eq!(kibibytes(meminfo, "MemAvailable:"), Some(7 * 1_024));
        let limits = "Limit    Soft Limit  Hard Limit  Units\nMax address space         614400000            unlimited            bytes\n";
        assert_eq!(address_space(limits), Some(614_400_000));
        let unlimited =
            "Max address space         unlimited            unlimited            bytes\n";
        assert_eq!(address_space(unlimited), None);
    }

    #[test]
    fn a_control_group_leaves_its_limit_less_what_is_used_and_not_cached() {
        let files = |path: &str| {
            let text = match path {
                "/sys/fs/cgroup/a/memory.max" => "1000\n",
                "/sys/fs/cgroup/a/memory.current" => "600\n",
                "/sys/fs/cgroup/a/memory.stat" => "anon 400\ninactive_file 100\n",
                "/sys/fs/cgroup/memory/memory.limit_in_bytes" => "50",
                "/sys/fs/cgroup/memory/memory.usage_in_bytes" => "20",
                "/sys/fs/cgroup/b/memory.max" => "max\n",
                _ => return None,
            };
            Some(text.to_owned())
        };
        assert_eq!(left_in_group("0::/a", &files), Some(500));
        assert_eq!(left_in_group("4:memory:/hidden", &files), Some(30));
        assert_eq!(left_in_group("0::/b", &files), None);
        assert_eq!(left_in_group("8:pids:/a", &files), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_machine_has_some_memory() {
        let available = available().unwrap();
        assert!(available > 1 << 20, "{available}");
        assert!(Estimate::default().with("x", "y", 1).check().is_ok());
        let whole = Estimate::default().with("x", "y", u64::MAX);
        assert!(whole.check().is_err());
    }
}
