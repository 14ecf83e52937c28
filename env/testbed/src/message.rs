//! Messages between the switch's process and the processes of the hosts: a line of JSON each.

use std::io::{self, BufRead, Write};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// A message to a host.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) enum ToHost {
    /// The host's interface exists: set it up and listen.
    Configure(Box<HostPlan>),
    /// Open this many connections to another host, one after another, and measure how long each takes.
    Probe {
        /// Number of the other host.
        to: u32,
        /// Number of connections.
        connections: u32,
    },
    /// Play the flows; time zero is this instant of the monotonic clock.
    Start {
        /// The instant, nanoseconds.
        zero_ns: u64,
    },
    /// Report the kernel's counters, and end.
    Stop,
}

/// A message from a host.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) enum FromHost {
    /// The host has a network namespace of its own.
    Unshared,
    /// The host listens.
    Listening,
    /// Times of connections, nanoseconds.
    Probed(Vec<u64>),
    /// A flow has begun.
    Started {
        /// Number of the flow.
        flow: u32,
        /// Nanoseconds of the monotonic clock.
        at_ns: u64,
    },
    /// The last byte of a flow has been read.
    Finished {
        /// Number of the flow.
        flow: u32,
        /// Nanoseconds of the monotonic clock.
        at_ns: u64,
    },
    /// The kernel's counters.
    Counted(HostCounters),
    /// The host cannot continue.
    Failed(String),
}

/// Tasks of a host.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct HostPlan {
    /// Number of the host.
    pub(crate) host: u32,
    /// Number of hosts.
    pub(crate) hosts: u32,
    /// Processors that the host may run on; empty for any.
    pub(crate) processors: Vec<usize>,
    /// Settings of the host's kernel as a sender.
    pub(crate) stack: Stack,
    /// The flows that it sends, in the order of their starts.
    pub(crate) sends: Vec<Sending>,
    /// The flows that it receives.
    pub(crate) receives: Vec<Receiving>,
}

/// Settings of a host's kernel.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Stack {
    /// Name of the congestion control.
    pub(crate) congestion: String,
    /// Smallest retransmission timeout, milliseconds.
    pub(crate) min_rto_ms: u64,
    /// Initial window, segments.
    pub(crate) init_cwnd: u32,
    /// Size of the largest IP packet, bytes.
    pub(crate) mtu: u32,
    /// True to use TCP timestamps.
    pub(crate) timestamps: bool,
    /// True to use selective acknowledgements.
    pub(crate) sack: bool,
    /// True to use explicit congestion notification.
    pub(crate) ecn: bool,
    /// Largest receive buffer, bytes.
    pub(crate) receive_buffer: u64,
    /// Rate of the interface, bit/s.
    pub(crate) rate_bps: u64,
}

/// A flow that a host sends.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Sending {
    pub(crate) flow: u32,
    pub(crate) start_ns: u64,
    pub(crate) to: u32,
    pub(crate) port: u16,
    pub(crate) bytes: u64,
}

/// A flow that a host receives.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Receiving {
    pub(crate) flow: u32,
    pub(crate) from: u32,
    pub(crate) port: u16,
    pub(crate) bytes: u64,
}

/// Counters of a host's kernel.
#[derive(Clone, Copy, Default, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct HostCounters {
    /// Retransmitted segments.
    pub(crate) retransmitted: u64,
    /// Expiries of retransmission timers.
    pub(crate) timeouts: u64,
    /// Tail loss probes.
    pub(crate) tail_probes: u64,
    /// Segments that arrived although they had been received before.
    pub(crate) duplicates: u64,
    /// Packets that the host's interface, queue discipline or TCP dropped for lack of room.
    pub(crate) lost: u64,
    /// True if the host's own processors receive the packets from the switch.
    pub(crate) steered: bool,
}

/// Reads the next line. `None` at the end of the input.
///
/// # Errors
/// When the input fails, or a line is not valid.
pub(crate) fn read<T: DeserializeOwned>(input: &mut impl BufRead) -> io::Result<Option<T>> {
    let mut line = String::new();
    if input.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    serde_json::from_str(&line)
        .map(Some)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Writes a line.
///
/// # Errors
/// When the output fails.
pub(crate) fn write<T: Serialize>(output: &mut impl Write, message: &T) -> io::Result<()> {
    let mut line = serde_json::to_vec(message).map_err(io::Error::other)?;
    line.push(b'\n');
    output.write_all(&line)?;
    output.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_back_as_they_were() {
        let mut bytes = Vec::new();
        let messages = [
            FromHost::Unshared,
            FromHost::Finished { flow: 3, at_ns: 17 },
            FromHost::Failed("a\nline".to_owned()),
        ];
        for message in &messages {
            write(&mut bytes, message).unwrap();
        }
        let mut input = bytes.as_slice();
        for message in messages {
            assert_eq!(read::<FromHost>(&mut input).unwrap(), Some(message));
        }
        assert_eq!(read::<FromHost>(&mut input).unwrap(), None);
        let garbled = read::<FromHost>(&mut b"{\"Finish".as_slice());
        assert_eq!(garbled.unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
