//! Complete sharing.

use super::{
    Definition, Deployment, LosslessPolicy, PacketView, Policy, PolicyInfo, Verdict, View,
};

pub(super) static DEFINITION: Definition = Definition {
    info: PolicyInfo {
        name: "cs",
        summary: "complete sharing",
        rule: "accept whatever fits",
        source: "Kamoun and Kleinrock 1980",
        deployment: Deployment::Today,
        parameters: &[],
    },
    build: |_, _| Ok(CompleteSharing.into()),
};

pub(super) static UNLIMITED: Definition = Definition {
    info: PolicyInfo {
        name: "unlimited",
        summary: "reference line: complete sharing with a buffer that never fills",
        rule: "accept everything",
        source: "no switch can run it",
        deployment: Deployment::Reference,
        parameters: &[],
    },
    build: |_, scenario| {
        Ok(match scenario.has_lossless() {
            // Pauses and marks are those of a switch that counts at both sides. With this α there are
            // no pauses.
            true => LosslessPolicy::dynamic_threshold(1e6).into(),
            false => CompleteSharing.into(),
        })
    },
};

/// Accepts every packet that fits: `Q + L <= B`.
#[derive(Clone, Copy, Default, Debug)]
pub struct CompleteSharing;

impl Policy for CompleteSharing {
    fn listens(&self) -> bool {
        false
    }

    #[inline]
    fn on_arrival(&mut self, _view: View<'_>, _packet: PacketView) -> Verdict {
        Verdict::Accept
    }

    fn threshold(&self, view: View<'_>, _queue: usize) -> Option<u64> {
        Some(view.buffer.capacity())
    }
}
