//! Samples of the lossless packets queued at each ingress port.

use crate::switch::mmu::IngressState;
use crate::switch::{Policy, Switch, SwitchId};
use crate::units::Time;

/// Times at which lossless ingress queues are sampled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IngressSampling {
    /// Time of the first sample.
    pub from: Time,
    /// End of sampling: no sample is taken later.
    pub to: Time,
    /// Time between samples, at least 1 ps.
    pub interval: Time,
}

/// A lossless ingress queue at an instant.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct IngressRow {
    /// Time of the sample.
    pub t: Time,
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
    next: Vec<Time>,
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
        now: impl Fn(&Switch<P>) -> Time,
        switches: &[Switch<P>],
    ) {
        let IngressSampling { from, to, interval } = self.sampling;
        let interval = interval.max(Time(1));
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
            let missed = (now.0 - next.0) / interval.0;
            let span = (missed + 1).saturating_mul(interval.0);
            *next = next.saturating_add(Time(span));
        }
    }
}
