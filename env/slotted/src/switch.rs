use std::fmt;
use std::str::FromStr;

use bufgym_util::input::{excerpt, suggestion};

use super::SlottedError;

/// Order in which a queue works on its packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Order {
    /// Priority: least remaining work first; for packets with values the largest value first.
    #[default]
    Pq,
    /// First in, first out.
    Fifo,
}

impl Order {
    /// `pq` or `fifo`.
    pub const fn name(self) -> &'static str {
        match self {
            Order::Pq => "pq",
            Order::Fifo => "fifo",
        }
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Order {
    type Err = SlottedError;

    fn from_str(text: &str) -> Result<Order, SlottedError> {
        [Order::Pq, Order::Fifo]
            .into_iter()
            .find(|order| order.name() == text)
            .ok_or_else(|| {
                SlottedError::Input(format!(
                    "order '{}' is not known{}; the orders are pq and fifo",
                    excerpt(text),
                    suggestion(text, &["pq", "fifo"])
                ))
            })
    }
}

/// The switch of the model.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Switch {
    /// Ports, each with one queue (`N`).
    pub ports: u32,
    /// Packets that the shared buffer holds (`B`).
    pub buffer: u64,
    /// Order of every queue.
    pub order: Order,
}

impl Switch {
    /// Largest number of ports.
    pub const MAX_PORTS: u32 = 1 << 20;
    /// Largest buffer, packets.
    pub const MAX_BUFFER: u64 = 1 << 40;

    /// Creates a switch with an empty buffer.
    ///
    /// # Errors
    /// Without ports or buffer, or with more than [`MAX_PORTS`](Switch::MAX_PORTS) or
    /// [`MAX_BUFFER`](Switch::MAX_BUFFER).
    pub fn new(ports: u32, buffer: u64, order: Order) -> Result<Switch, SlottedError> {
        if !(1..=Switch::MAX_PORTS).contains(&ports) {
            return Err(SlottedError::Input(format!(
                "ports: must be from 1 to {}, found {ports}",
                Switch::MAX_PORTS
            )));
        }
        if !(1..=Switch::MAX_BUFFER).contains(&buffer) {
            return Err(SlottedError::Input(format!(
                "buffer: must be from 1 to {} packets, found {buffer}",
                Switch::MAX_BUFFER
            )));
        }
        Ok(Switch {
            ports,
            buffer,
            order,
        })
    }
}
