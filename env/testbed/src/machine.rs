//! The machine that everything runs on: its clock, its processors, and the packets that it dropped.

use std::fs;
use std::io;

use rustix::process::setpriority_process;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, clock_getres, clock_gettime};

use crate::raw;

/// Real-time priority of the processes of hosts.
pub(crate) const HOST_PRIORITY: i32 = 10;
/// Real-time priority of the switch.
pub(crate) const SWITCH_PRIORITY: i32 = 20;

/// Precedence among programs without real-time priority, if only that is permitted.
const MIN_NICE: i32 = -20;

/// Returns the time of the monotonic clock, nanoseconds.
pub(crate) fn monotonic_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::Monotonic))
}

/// Sleeps for `ns` nanoseconds, or until a signal comes.
pub(crate) fn sleep_ns(ns: u64) {
    std::thread::sleep(std::time::Duration::from_nanos(ns));
}

/// Returns the time of the real-time clock, nanoseconds.
pub(crate) fn real_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::Realtime))
}

/// Returns the resolution of the monotonic clock, nanoseconds: the kernel's value, or the smallest
/// observed step, if that is larger.
pub(crate) fn clock_step_ns() -> u64 {
    let mut least = u64::MAX;
    let mut before = monotonic_ns();
    for _ in 0..1_000 {
        let now = monotonic_ns();
        if now > before {
            least = least.min(now - before);
            before = now;
        }
    }
    least.max(nanoseconds(clock_getres(ClockId::Monotonic)))
}

fn nanoseconds(time: rustix::time::Timespec) -> u64 {
    let [seconds, rest] = [time.tv_sec, time.tv_nsec].map(|part| u64::try_from(part).unwrap_or(0));
    seconds * 1_000_000_000 + rest
}

/// Returns the processors that this thread may run on.
pub(crate) fn processors() -> io::Result<Vec<usize>> {
    let allowed = sched_getaffinity(None)?;
    let numbers = 0..CpuSet::MAX_CPU;
    Ok(numbers.filter(|&number| allowed.is_set(number)).collect())
}

/// Keeps this thread on these processors, if any are given.
pub(crate) fn pin(processors: &[usize]) -> io::Result<()> {
    if processors.is_empty() {
        return Ok(());
    }
    let mut set = CpuSet::new();
    for &processor in processors {
        set.set(processor);
    }
    sched_setaffinity(None, &set)?;
    Ok(())
}

/// Keeps this thread on these processors and lets it run before other programs. Returns true if the
/// machine has allowed both.
pub(crate) fn settle(processors: &[usize], priority: i32) -> bool {
    let pinned = pin(processors).is_ok();
    let preferred = raw::run_in_real_time(priority).is_ok();
    if !preferred {
        // Uses the next best setting.
        let _ = setpriority_process(None, MIN_NICE);
    }
    pinned && preferred
}

/// Returns the average number of processes that ran or wanted to over the last minute.
pub(crate) fn load_average() -> Option<f64> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    text.split_whitespace().next()?.parse().ok()
}

/// Returns the number of packets that an interface of this thread's namespace has dropped or damaged,
/// in both directions.
pub(crate) fn interface_drops(name: &str) -> io::Result<u64> {
    let text = fs::read_to_string("/proc/thread-self/net/dev")?;
    parse_drops(&text, name)
        .ok_or_else(|| io::Error::other(format!("interface {name} is not in /proc/net/dev")))
}

fn parse_drops(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| {
        let (found, rest) = line.split_once(':')?;
        (found.trim() == name).then_some(rest)
    })?;
    let fields: Vec<u64> = line
        .split_whitespace()
        .map_while(|field| field.parse().ok())
        .collect();
    // Bytes, packets, errors, drops, overruns, frame, compressed, multicast; the same for sending.
    let of = |place: usize| fields.get(place).copied();
    Some(of(2)? + of(3)? + of(4)? + of(10)? + of(11)? + of(12)?)
}

/// Returns the number of packets that the kernel has dropped between interface and protocol because a
/// processor did not keep up, on the whole machine.
pub(crate) fn backlog_drops() -> io::Result<u64> {
    let text = fs::read_to_string("/proc/net/softnet_stat")?;
    let dropped = text.lines().filter_map(|line| {
        let field = line.split_whitespace().nth(1)?;
        u64::from_str_radix(field, 16).ok()
    });
    Ok(dropped.sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_of_an_interface_are_added_up() {
        let text = "Inter-|   Receive\n face |bytes\n    lo: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n\
                    eth0:10 1 0 2 0 0 0 0 10 1 1 4 0 0 0 0\n";
        assert_eq!(parse_drops(text, "eth0"), Some(2 + 1 + 4));
        assert_eq!(parse_drops(text, "lo"), Some(3 + 4 + 5 + 11 + 12 + 13));
        assert_eq!(parse_drops(text, "eth1"), None);
    }

    #[test]
    fn the_clock_moves_and_has_a_step() {
        let before = monotonic_ns();
        assert!(clock_step_ns() > 0);
        assert!(monotonic_ns() > before);
    }
}
