//! What the switch's process and the processes of the hosts tell each other: a line of JSON each.

use std::io::{self, BufRead, Write};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// To a host.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) enum ToHost {
    /// Its interface is there: set it up and listen.
    Configure(Box<HostPlan>),
    /// Open so many connections to this host, one after another, and measure how long each takes.
    Probe {
        /// Number of the other host.
        to: u32,
        /// How many.
        connections: u32,
    },
    /// Play the flows; time zero is this instant of the monotonic clock.
    Start {
        /// Nanoseconds.
        zero_ns: u64,
    },
    /// Report what the kernel has counted, and end.
    Stop,
}

/// From a host.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) enum FromHost {
    /// It has a network namespace of its own.
    Unshared,
    /// It listens.
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
    /// What the kernel has counted.
    Counted(HostCounters),
    /// The host cannot go on.
    Failed(String),
}

/// What a host has to do.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct HostPlan {
    /// Its number.
    pub(crate) host: u32,
    /// Number of hosts.
    pub(crate) hosts: u32,
    /// Processors that it may run on; empty: any.
    pub(crate) processors: Vec<usize>,
    /// How its kernel sends.
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
    /// Largest IP packet.
    pub(crate) mtu: u32,
    /// TCP timestamps.
    pub(crate) timestamps: bool,
    /// Selective acknowledgements.
    pub(crate) sack: bool,
    /// Explicit congestion notification.
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

/// What the kernel of a host has counted.
#[derive(Clone, Copy, Default, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct HostCounters {
    /// Segments sent again.
    pub(crate) retransmitted: u64,
    /// Expiries of retransmission timers.
    pub(crate) timeouts: u64,
    /// Tail loss probes.
    pub(crate) tail_probes: u64,
    /// Segments that came although they were there.
    pub(crate) duplicates: u64,
    /// Packets that its interface, its queue discipline or its TCP dropped for want of room.
    pub(crate) lost: u64,
    /// Its own processors receive what the switch sends.
    pub(crate) steered: bool,
}

/// Reads the next line. `None` at the end of the input.
///
/// # Errors
/// When the input fails, or a line is not what is expected.
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
