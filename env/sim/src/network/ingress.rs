//! Samples of the lossless packets queued at each ingress port.

use crate::switch::mmu::IngressState;
use crate::switch::{Policy, Switch, SwitchId};
use crate::units::{Duration, Instant};

/// Times at which lossless ingress queues are sampled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IngressSampling {
    /// Time of the first sample.
    pub from: Instant,
    /// End of sampling: no sample is taken later.
    pub to: Instant,
    /// Time between samples, at least 1 ps.
    pub interval: Duration,
}

/// A lossless ingress queue at an instant.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct IngressRow {
    /// Time of the sample.
    pub t: Instant,
    /// The switch.
    pub switch: SwitchId,
    /// Port, priority and lengths of the queue.
    pub queue: IngressState,
}

/// Samples taken at all switches.
#[derive(Clone, Debug)]
pub(super) struct IngressSamples {
    sampling: IngressSampling,
    /// Time of the next sample, for every switch.
    next: Vec<Instant>,
    pub(super) rows: Vec<IngressRow>,
}

impl IngressSamples {
    pub(super) fn new(sampling: IngressSampling) -> IngressSamples {
        IngressSamples {
            sampling,
            next: Vec::new(),
            rows: Vec::new(),
        }
    }

    /// Samples the queues before the events of an instant. Nothing changes between events, so a
    /// single sample stands for all that have become due since.
    pub(super) fn sample<P: Policy>(
        &mut self,
        now: impl Fn(&Switch<P>) -> Instant,
        switches: &[Switch<P>],
    ) {
        let IngressSampling { from, to, interval } = self.sampling;
        let interval = interval.max(Duration(1));
        self.next.resize(switches.len(), from);
        for (switch, next) in switches.iter().zip(&mut self.next) {
            let now = now(switch);
            if *next > now || *next > to {
                continue;
            }
            let Some(mmu) = switch.mmu() else { continue };
            let t = *next;
            self.rows.extend(
                mmu.lossless_ingress(switch.buffer())
                    .map(|queue| IngressRow {
                        t,
                        switch: switch.id(),
                        queue,
                    }),
            );
            let missed = (now - *next).0 / interval.0;
            *next = next.saturating_add(interval.saturating_mul(missed + 1));
        }
    }
}
