//! Samples of the queues of lossless packets at the ports by which they come.

use crate::switch::mmu::IngressState;
use crate::switch::{Policy, Switch, SwitchId};
use crate::units::Time;

/// When lossless ingress queues are looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IngressSampling {
    /// The first sample.
    pub from: Time,
    /// No sample is taken after it.
    pub to: Time,
    /// Time between samples, at least 1 ps.
    pub interval: Time,
}

/// A lossless ingress queue at an instant.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct IngressRow {
    /// When.
    pub t: Time,
    /// The switch.
    pub switch: SwitchId,
    /// Its port, priority and lengths.
    pub queue: IngressState,
}

/// What was seen of all switches.
#[derive(Clone, Debug)]
pub(super) struct IngressSamples {
    sampling: IngressSampling,
    /// The next sample of every switch.
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

    /// Before the events of an instant. Nothing changes between events: of the samples before this
    /// one, one is enough.
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
