//! Hosts.

use super::ScenarioError;
use super::named::named;
use super::settings::settings;
use super::validate::Checks;

/// Longest time that a host may take for a packet, nanoseconds: a second.
const MAX_JITTER_NS: u64 = 1_000_000_000;

settings! {
    /// Hosts: how flows share an interface, and how fast packets are taken.
    pub struct HostSettings {
        queue as host_queue: HostQueue = HostQueue::Fair, "how the flows of a host share its interface: fair | fifo";
        /// A flow then has at most two packets in the queue of its host, as with TCP small queues.
        late_binding: bool = false, "a flow makes a packet when its host can soon send it";
        /// Each packet waits for a random time, uniform up to this one, and behind the packets that
        /// came before it.
        jitter_ns as host_jitter_ns: u64 = 0, "longest time until a host takes a packet that has reached it, ns";
    }
}

named! {
    /// Way in which the flows of one host share its network interface.
    HostQueue {
        /// One packet per flow in turn, as Linux `fq` does.
        Fair = "fair",
        /// One queue for all flows of the host.
        Fifo = "fifo",
    }
}

impl HostSettings {
    pub(super) fn validate(&self, check: &Checks<'_>) -> Result<(), ScenarioError> {
        if self.late_binding && self.queue == HostQueue::Fifo {
            let problem = "needs host_queue fair; must be false where it is fifo";
            return check.invalid("late_binding", self.late_binding, problem);
        }
        check.within("host_jitter_ns", self.jitter_ns, 0, MAX_JITTER_NS)
    }
}
