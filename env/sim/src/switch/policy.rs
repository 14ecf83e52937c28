//! Buffer-sharing policies, one file each, behind the trait [`Policy`].

mod abm;
mod credence;
mod cs;
mod definition;
mod dt;
mod edt;
mod fab;
mod flow_table;
mod followlqd;
mod harmonic;
mod ib;
mod lqd;
pub mod ndt;
mod occamy;
mod pot;
mod search;
mod sma;
mod smxq;
mod sonic;
mod st;
mod tdt;
#[cfg(test)]
mod workbench;

pub use abm::{AbmNs3, ActiveBufferConfig, ActiveBufferManagement};
pub use credence::{
    Averages, Credence, FEATURES, Features, Forest, ForestError, ForestModel, MAX_DEPTH, MAX_TREES,
    MODEL_FILE, ModelError, Tree,
};
pub use cs::CompleteSharing;
pub use definition::{Arguments, Definition, Deployment, Kind, ParameterInfo, PolicyInfo};
pub use dt::{DynamicThreshold, DynamicThresholds};
pub use edt::{EnhancedDynamicThreshold, EnhancedDynamicThresholdConfig};
pub use fab::{FlowAwareBuffer, FlowAwareConfig};
pub use followlqd::{FollowLqd, VirtualQueues};
pub use harmonic::Harmonic;
pub use ib::{IntelligentBuffer, IntelligentBufferConfig};
pub use lqd::LongestQueueDrop;
pub use ndt::{ControlledThreshold, PortVolumes, TriggerCause};
pub use occamy::Occamy;
pub use pot::PushOutWithThreshold;
pub use search::{Bound, Scale, Search, SearchRange};
pub use sma::MinimumAllocation;
pub use smxq::MaximumQueueLengths;
pub use sonic::{LosslessPolicy, LosslessThresholds, Sharing};
pub use st::StaticThreshold;
pub use tdt::{TrafficAwareConfig, TrafficAwareThreshold, TrafficState};

use super::SharedBuffer;
use crate::units::{Instant, Rate};

/// Switch state that a policy may read.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// Queue lengths, occupancy and size of the buffer.
    pub buffer: &'a SharedBuffer,
    /// The current instant.
    pub now: Instant,
    /// Line rate of every port.
    pub rate: Rate,
}

/// A packet as a policy sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketView {
    /// The output port.
    pub port: usize,
    /// Queue of the packet, an index into [`SharedBuffer::queues`]; the port itself if ports have one
    /// queue.
    pub queue: usize,
    /// Wire bytes L.
    pub bytes: u64,
    /// Number of the flow and direction: a flow's data and acknowledgements have different ones.
    pub flow: u32,
    /// True if the packet was sent in the flow's first round trip, as defined by the scenario's
    /// `unscheduled`.
    pub unscheduled: bool,
}

impl PacketView {
    /// Returns a packet of flow 0 to a port with one queue.
    pub fn of_port(port: usize, bytes: u64) -> PacketView {
        PacketView {
            port,
            queue: port,
            bytes,
            flow: 0,
            unscheduled: false,
        }
    }
}

/// A policy's decision on an arriving packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Verdict {
    /// Enqueue the packet, if it fits into the buffer.
    Accept,
    /// Drop the packet.
    Drop,
}

/// Reason for the loss of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Loss {
    /// The policy did not accept the packet.
    Refused,
    /// The packet did not fit into the buffer, and the policy made no room.
    Full,
    /// The policy removed the packet from its queue.
    PushedOut,
    /// The policy accepted the packet, and queue management dropped it before it was enqueued.
    Early,
    /// Queue management dropped the packet when it was about to be sent.
    Head,
}

/// Decides which packets enter the shared buffer, and which are pushed out of it.
///
/// The switch calls [`on_arrival`](Policy::on_arrival) for every arriving packet that fits
/// (`Q + L <= B`). If one does not fit, [`victim`](Policy::victim) chooses the queues whose tail
/// packets make room; without a victim, the packet is lost. After every enqueue and departure
/// [`expel`](Policy::expel) may remove packets at the head of queues. The other calls report what
/// happened. Policies do not count bytes themselves: queue lengths come from the [`View`].
pub trait Policy {
    /// Decides whether a packet may enter its queue. The view shows the state before the arrival.
    fn on_arrival(&mut self, view: View<'_>, packet: PacketView) -> Verdict;

    /// Returns true if [`on_enqueue`](Policy::on_enqueue) or [`on_departure`](Policy::on_departure) does something. The
    /// switch asks once, when it is created, and calls neither where they do nothing.
    fn listens(&self) -> bool {
        true
    }

    /// Notes that the packet was enqueued; the view shows the state after it.
    fn on_enqueue(&mut self, _view: View<'_>, _packet: PacketView) {}

    /// Notes that the last bit of a packet has left its port. If ports have a
    /// [queue of the device](crate::scenario::QueueSettings::device_fifo_packets), the first bit has left
    /// the queue. The view shows the state after it.
    fn on_departure(&mut self, _view: View<'_>, _packet: PacketView) {}

    /// Notes that the packet was lost; the view shows the state after it.
    fn on_drop(&mut self, _view: View<'_>, _packet: PacketView, _loss: Loss) {}

    /// Returns true if the policy removes packets that are already enqueued.
    fn pushes_out(&self) -> bool {
        false
    }

    /// Returns the queue whose tail packet makes room for an arrival that does not fit. The switch asks
    /// until the arrival fits and then removes the chosen packets; at `None` the arrival is lost.
    /// `lengths` are the bytes of every queue without the chosen packets, zero if none can be removed.
    fn victim(&mut self, _view: View<'_>, _packet: PacketView, _lengths: &[u64]) -> Option<usize> {
        None
    }

    /// Returns a queue whose head packet, behind the one in service, is removed. If the policy pushes
    /// out, the switch asks after every enqueue and departure until there is no queue or no such
    /// packet.
    fn expel(&mut self, _view: View<'_>) -> Option<usize> {
        None
    }

    /// Returns true if the simulation must wait for a decision of the control loop.
    #[inline]
    fn decision_due(&self) -> bool {
        false
    }

    /// Returns the thresholds of a lossless switch, which also counts packets by the port by which they
    /// came. The policy is then informed of packets, but not asked.
    fn lossless_thresholds(&self) -> Option<LosslessThresholds> {
        None
    }

    /// Returns the threshold of `queue`, bytes: the length at which it stops accepting. `None` without
    /// one.
    fn threshold(&self, view: View<'_>, queue: usize) -> Option<u64>;

    /// Returns the control factor α of `queue`, if the policy has one.
    fn alpha(&self, _queue: usize) -> Option<f64> {
        None
    }

    /// Returns constants that another implementation of the policy needs, named as in control records.
    fn constants(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// Sets the control factor α of `queue`, above 0, from the next packet on. Returns true if the
    /// policy has an α per queue: most have none, and [`DynamicThreshold`] has one for all queues
    /// ([`DynamicThresholds`] has one for each, [`ControlledThreshold`] one per port). Parameters
    /// derived from the initial α stay.
    ///
    /// # Panics
    /// When the policy has an α per queue, but no such queue.
    fn set_alpha(&mut self, _queue: usize, _alpha: f64) -> bool {
        false
    }

    /// Returns true if the packet that [`on_arrival`](Policy::on_arrival) saw last is one whose loss
    /// costs its flow most. [Early drop](crate::switch::aqm::early) then spares it.
    #[inline]
    fn spares(&self) -> bool {
        false
    }
}

/// Lists the policies, in the order of listings: module and type of each. The module must have a
/// `DEFINITION`. A semicolon precedes the variants that a policy takes in some scenarios.
macro_rules! policies {
    (
        $($(#[$doc:meta])* $module:ident::$policy:ident,)*;
        $($(#[$form_doc:meta])* $form_module:ident::$form:ident,)*
    ) => {
        /// The policies that need no control loop, without dynamic dispatch on the packet path.
        #[derive(Clone, Debug)]
        pub enum AnyPolicy {
            $($(#[$doc])* $policy($module::$policy),)*
            $($(#[$form_doc])* $form($form_module::$form),)*
        }

        $(impl From<$module::$policy> for AnyPolicy {
            fn from(policy: $module::$policy) -> AnyPolicy {
                AnyPolicy::$policy(policy)
            }
        })*

        $(impl From<$form_module::$form> for AnyPolicy {
            fn from(policy: $form_module::$form) -> AnyPolicy {
                AnyPolicy::$form(policy)
            }
        })*

        /// Every policy that a policy string can name.
        static DEFINITIONS: &[&Definition] = &[
            $(&$module::DEFINITION,)*
            &sonic::WITH_ABM,
            &sonic::REVERIE,
            &cs::UNLIMITED,
        ];

        macro_rules! each_policy {
            ($any:expr, $each:ident => $body:expr) => {
                match $any {
                    $(AnyPolicy::$policy($each) => $body,)*
                    $(AnyPolicy::$form($each) => $body,)*
                }
            };
        }
    };
}

policies! {
    /// Complete sharing; with an unlimited buffer also the reference `unlimited`.
    cs::CompleteSharing,
    /// Complete partitioning.
    st::StaticThreshold,
    /// Sharing with maximum queue lengths.
    smxq::MaximumQueueLengths,
    /// Sharing with minimum allocation.
    sma::MinimumAllocation,
    /// Dynamic Threshold.
    dt::DynamicThreshold,
    /// Harmonic.
    harmonic::Harmonic,
    /// Enhanced Dynamic Threshold.
    edt::EnhancedDynamicThreshold,
    /// Traffic-aware Dynamic Threshold.
    tdt::TrafficAwareThreshold,
    /// Flow-aware buffer sharing.
    fab::FlowAwareBuffer,
    /// Cisco's Intelligent Buffer.
    ib::IntelligentBuffer,
    /// Active Buffer Management.
    abm::ActiveBufferManagement,
    /// Longest Queue Drop.
    lqd::LongestQueueDrop,
    /// Occamy.
    occamy::Occamy,
    /// Push-out with threshold.
    pot::PushOutWithThreshold,
    /// FollowLQD.
    followlqd::FollowLqd,
    /// Credence.
    credence::Credence,
    /// SONiC's Dynamic Threshold, ABM instead of it, and Reverie: for buffers with lossless packets.
    sonic::LosslessPolicy,
    ;
    /// Dynamic Threshold with an α per queue, if `queue_alpha` is set.
    dt::DynamicThresholds,
    /// Active Buffer Management with the estimates of its published code.
    abm::AbmNs3,
}

impl Policy for AnyPolicy {
    #[inline]
    fn on_arrival(&mut self, view: View<'_>, packet: PacketView) -> Verdict {
        each_policy!(self, policy => policy.on_arrival(view, packet))
    }

    fn listens(&self) -> bool {
        each_policy!(self, policy => policy.listens())
    }

    #[inline]
    fn on_enqueue(&mut self, view: View<'_>, packet: PacketView) {
        each_policy!(self, policy => policy.on_enqueue(view, packet));
    }

    #[inline]
    fn on_departure(&mut self, view: View<'_>, packet: PacketView) {
        each_policy!(self, policy => policy.on_departure(view, packet));
    }

    #[inline]
    fn on_drop(&mut self, view: View<'_>, packet: PacketView, loss: Loss) {
        each_policy!(self, policy => policy.on_drop(view, packet, loss));
    }

    fn pushes_out(&self) -> bool {
        each_policy!(self, policy => policy.pushes_out())
    }

    fn victim(&mut self, view: View<'_>, packet: PacketView, lengths: &[u64]) -> Option<usize> {
        each_policy!(self, policy => policy.victim(view, packet, lengths))
    }

    fn expel(&mut self, view: View<'_>) -> Option<usize> {
        each_policy!(self, policy => policy.expel(view))
    }

    #[inline]
    fn decision_due(&self) -> bool {
        each_policy!(self, policy => policy.decision_due())
    }

    fn lossless_thresholds(&self) -> Option<LosslessThresholds> {
        each_policy!(self, policy => policy.lossless_thresholds())
    }

    fn threshold(&self, view: View<'_>, queue: usize) -> Option<u64> {
        each_policy!(self, policy => policy.threshold(view, queue))
    }

    fn alpha(&self, queue: usize) -> Option<f64> {
        each_policy!(self, policy => policy.alpha(queue))
    }

    fn constants(&self) -> Vec<(&'static str, String)> {
        each_policy!(self, policy => policy.constants())
    }

    fn set_alpha(&mut self, queue: usize, alpha: f64) -> bool {
        each_policy!(self, policy => policy.set_alpha(queue, alpha))
    }

    #[inline]
    fn spares(&self) -> bool {
        each_policy!(self, policy => policy.spares())
    }
}

/// Returns every heuristic policy with its rule, source and parameters, for listings.
pub fn catalogue() -> &'static [&'static Definition] {
    DEFINITIONS
}
