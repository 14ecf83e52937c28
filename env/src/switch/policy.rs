//! Buffer-sharing policies behind one small seam, one file each.

mod cs;
mod dt;
mod edt;
mod ndt;
mod st;

pub use cs::CompleteSharing;
pub use dt::DynamicThreshold;
pub use edt::{EnhancedDynamicThreshold, EnhancedDynamicThresholdConfig};
pub use ndt::{NeuralDynamicThreshold, PortVolumes, TriggerCause};
pub use st::StaticThreshold;

use super::SharedBuffer;
use crate::units::{Rate, Time};

/// What a policy may read when it is asked.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// Queue lengths, occupancy and size of the buffer, before the event.
    pub buffer: &'a SharedBuffer,
    /// The current instant.
    pub now: Time,
    /// Line rate of every port.
    pub rate: Rate,
}

/// A policy's answer to an arriving packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Verdict {
    /// Enqueue it, provided that it fits into the buffer.
    Accept,
    /// Drop it.
    Drop,
}

/// Decides which packets enter the shared buffer.
///
/// The switch calls [`on_arrival`](Policy::on_arrival) for every arriving packet that fits
/// (`Q + L <= B`; one that does not is dropped without a question) and then reports what happened.
/// A policy never counts bytes itself: lengths come from the [`View`].
pub trait Policy {
    /// Whether a packet of `bytes` wire bytes may enter the queue of `port`. The view shows the
    /// state before the arrival.
    fn on_arrival(&mut self, view: View<'_>, port: usize, bytes: u64) -> Verdict;

    /// The packet was enqueued; the view shows the state after it.
    fn on_enqueue(&mut self, _view: View<'_>, _port: usize, _bytes: u64) {}

    /// The last bit of a packet has left `port`; the view shows the state after it.
    fn on_departure(&mut self, _view: View<'_>, _port: usize, _bytes: u64) {}

    /// The packet was dropped, by the policy or, if `full`, because it did not fit.
    fn on_drop(&mut self, _view: View<'_>, _port: usize, _bytes: u64, _full: bool) {}

    /// Whether the simulation must wait for a decision of the control loop.
    #[inline]
    fn decision_due(&self) -> bool {
        false
    }

    /// Queue length at which `port` stops accepting, bytes, where the policy has such a threshold.
    fn threshold(&self, view: View<'_>, port: usize) -> Option<u64>;

    /// The control factor α of `port`, for policies that have one.
    fn alpha(&self, _port: usize) -> Option<f64> {
        None
    }
}

/// Any of the policies that need no control loop, without dynamic dispatch on the packet path.
#[derive(Clone, Debug)]
pub enum AnyPolicy {
    /// Complete sharing; with an unlimited buffer also the reference `unlimited`.
    CompleteSharing(CompleteSharing),
    /// Complete partitioning.
    StaticThreshold(StaticThreshold),
    /// Dynamic Threshold.
    DynamicThreshold(DynamicThreshold),
    /// Enhanced Dynamic Threshold.
    EnhancedDynamicThreshold(EnhancedDynamicThreshold),
}

macro_rules! each_policy {
    ($any:expr, $policy:ident => $body:expr) => {
        match $any {
            AnyPolicy::CompleteSharing($policy) => $body,
            AnyPolicy::StaticThreshold($policy) => $body,
            AnyPolicy::DynamicThreshold($policy) => $body,
            AnyPolicy::EnhancedDynamicThreshold($policy) => $body,
        }
    };
}

impl Policy for AnyPolicy {
    #[inline]
    fn on_arrival(&mut self, view: View<'_>, port: usize, bytes: u64) -> Verdict {
        each_policy!(self, policy => policy.on_arrival(view, port, bytes))
    }

    #[inline]
    fn on_enqueue(&mut self, view: View<'_>, port: usize, bytes: u64) {
        each_policy!(self, policy => policy.on_enqueue(view, port, bytes));
    }

    #[inline]
    fn on_departure(&mut self, view: View<'_>, port: usize, bytes: u64) {
        each_policy!(self, policy => policy.on_departure(view, port, bytes));
    }

    #[inline]
    fn on_drop(&mut self, view: View<'_>, port: usize, bytes: u64, full: bool) {
        each_policy!(self, policy => policy.on_drop(view, port, bytes, full));
    }

    #[inline]
    fn decision_due(&self) -> bool {
        each_policy!(self, policy => policy.decision_due())
    }

    fn threshold(&self, view: View<'_>, port: usize) -> Option<u64> {
        each_policy!(self, policy => policy.threshold(view, port))
    }

    fn alpha(&self, port: usize) -> Option<f64> {
        each_policy!(self, policy => policy.alpha(port))
    }
}

/// Every heuristic policy with its rule, source and parameters, for listings.
pub fn catalogue() -> &'static [super::PolicyInfo] {
    super::spec::CATALOGUE
}
