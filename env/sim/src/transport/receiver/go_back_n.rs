//! The receiver of go-back-N, as in the ns-3 code of HPCC (SIGCOMM 2019): it does not keep segments that
//! arrive out of order.

use super::{Receiver, Reception};
use crate::transport::{Settings, TransportKind};
use crate::units::{Duration, Instant};

/// Time after which the receiver asks for a missing segment again.
const NACK_INTERVAL: Duration = Duration::from_us(500);

/// Answer of a receiver to a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reply {
    /// An acknowledgement of all segments below the next one expected.
    Ack,
    /// A negative acknowledgement: the same, and the next segment is missing.
    Nack,
    /// No answer.
    Silence,
}

impl Receiver {
    /// Returns a receiver of a flow of this transport.
    pub(crate) fn of(kind: TransportKind) -> Receiver {
        Receiver {
            rdma: kind.is_rdma(),
            ..Receiver::default()
        }
    }

    /// Returns true if the receiver uses go-back-N.
    #[inline(always)]
    pub(crate) fn is_rdma(&self) -> bool {
        self.rdma
    }

    /// Takes segment `index` of a flow of `segments` segments.
    pub(crate) fn receive_in_sequence(
        &mut self,
        index: u32,
        segments: u32,
        now: Instant,
        settings: &Settings,
    ) -> (Reception, Reply) {
        let delivered = u32::from(index == self.next);
        let duplicate = index < self.next;
        let reply = if delivered > 0 {
            self.next += 1;
            self.stamp = Instant::ZERO;
            Reply::Ack
        } else if duplicate {
            // The published code sends no answer. At the end of a flow, the sender would then repeat
            // the segments for ever if the last acknowledgement is lost.
            match settings.answers_duplicates || self.next == segments {
                true => Reply::Ack,
                false => Reply::Silence,
            }
        } else if self.stamp > Instant::ZERO && now < self.stamp + NACK_INTERVAL {
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
