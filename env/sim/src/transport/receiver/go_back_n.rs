//! The receiving end of go-back-N, as in the ns-3 code of HPCC (SIGCOMM 2019): what is out of order
//! is not kept.

use super::{Receiver, Reception};
use crate::transport::{Settings, TransportKind};
use crate::units::Time;

/// A missing segment is asked for again after this time.
const NACK_INTERVAL: Time = Time::from_us(500);

/// What a receiver says of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reply {
    /// All segments below the next one expected are here.
    Ack,
    /// The same, and the next one is missing.
    Nack,
    /// Nothing.
    Silence,
}

impl Receiver {
    /// A receiver of a flow of this transport.
    pub(crate) fn of(kind: TransportKind) -> Receiver {
        Receiver {
            rdma: kind.is_rdma(),
            ..Receiver::default()
        }
    }

    /// Whether it is one of go-back-N.
    #[inline(always)]
    pub(crate) fn is_rdma(&self) -> bool {
        self.rdma
    }

    /// Takes segment `index` of a flow of so many.
    pub(crate) fn receive_in_sequence(
        &mut self,
        index: u32,
        segments: u32,
        now: Time,
        settings: &Settings,
    ) -> (Reception, Reply) {
        let delivered = u32::from(index == self.next);
        let duplicate = index < self.next;
        let reply = if delivered > 0 {
            self.next += 1;
            self.stamp = Time::ZERO;
            Reply::Ack
        } else if duplicate {
            // The published code is silent. At the end of a flow that would have its sender repeat
            // itself for ever if the last acknowledgement is lost.
            match settings.answers_duplicates || self.next == segments {
                true => Reply::Ack,
                false => Reply::Silence,
            }
        } else if self.stamp > Time::ZERO && now < self.stamp + NACK_INTERVAL {
            Reply::Silence
        } else {
            self.stamp = now;
            Reply::Nack
        };
        let reception = Reception {
            delivered,
            duplicate,
        };
        (reception, reply)
    }
}
