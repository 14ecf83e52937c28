//! The kernel's counters in the namespace of a host.

use std::fs;
use std::io;

use crate::message::HostCounters;
use crate::{INTERFACE, commands, machine};

/// Counters of segments that TCP dropped although they had arrived.
const DROPS: [&str; 7] = [
    "ListenOverflows",
    "ListenDrops",
    "TCPBacklogDrop",
    "RcvPruned",
    "TCPRcvQDrop",
    "TCPReqQFullDrop",
    "TCPZeroWindowDrop",
];

/// Reads the counters; `refused` connections count as lost.
pub(super) fn read(refused: u64) -> io::Result<HostCounters> {
    let snmp = fs::read_to_string("/proc/net/snmp")?;
    let netstat = fs::read_to_string("/proc/net/netstat")?;
    let of = |name: &str| counter(&netstat, "TcpExt:", name).unwrap_or(0);
    let dropped: u64 = DROPS.iter().map(|name| of(name)).sum();
    let interface = machine::interface_drops(INTERFACE)?;
    let queue = commands::qdisc_drops(INTERFACE).map_err(io::Error::other)?;
    Ok(HostCounters {
        retransmitted: counter(&snmp, "Tcp:", "RetransSegs").unwrap_or(0),
        timeouts: of("TCPTimeouts"),
        tail_probes: of("TCPLossProbes"),
        duplicates: of("TCPDSACKOldSent") + of("TCPDSACKOfoSent"),
        lost: dropped + interface + queue + refused,
        steered: false,
    })
}

/// Returns a counter of a file with pairs of lines, names and values, that begin with a word.
fn counter(text: &str, section: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter(|line| line.starts_with(section));
    let (names, values) = (lines.next()?, lines.next()?);
    let mut pairs = names.split_whitespace().zip(values.split_whitespace());
    let (_, value) = pairs.find(|(key, _)| *key == name)?;
    value.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_found_by_section_and_name() {
        let text = "TcpExt: A B\nTcpExt: 1 2\nIpExt: A C\nIpExt: 3 4\n";
        assert_eq!(counter(text, "TcpExt:", "B"), Some(2));
        assert_eq!(counter(text, "IpExt:", "A"), Some(3));
        assert_eq!(counter(text, "IpExt:", "B"), None);
        assert_eq!(counter("", "IpExt:", "B"), None);
    }
}
