//! The congestion controls as one enum, without dynamic dispatch on the packet path, and those of callers.

use std::fmt::Debug;

use super::{Acked, CongestionControl, NewReno, Pacer, Window};
use crate::scenario::{TransportKind, transports};
use crate::transport::Settings;
use crate::units::Instant;

/// A congestion control of a caller. Every type that is also `Clone`, `Debug`, `Send`, `Sync` and without
/// borrowed data is one: a flow begins with a clone of the value.
pub trait OwnControl: CongestionControl + Debug + Send + Sync {
    /// Returns a copy.
    fn boxed(&self) -> Box<dyn OwnControl>;
}

impl<C: CongestionControl + Clone + Debug + Send + Sync + 'static> OwnControl for C {
    fn boxed(&self) -> Box<dyn OwnControl> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn OwnControl> {
    fn clone(&self) -> Self {
        (**self).boxed()
    }
}

macro_rules! congestion {
    (
        $(#[$newreno:meta])* NewReno = $name:literal, $properties:expr, NewReno;
        $($(#[$doc:meta])* $kind:ident = $other_name:literal, $other:expr, $control:ident;)+
    ) => {
        /// The congestion control of one flow. Variants with state are boxed, so that it takes eight bytes in
        /// every flow.
        #[derive(Clone, Debug)]
        pub(crate) enum Congestion {
            NewReno(NewReno),
            Stateful(Box<Stateful>),
        }

        #[derive(Clone, Debug)]
        pub(crate) enum Stateful {
            $($kind(super::$control),)+
            Own(Box<dyn OwnControl>),
        }

        impl Congestion {
            pub(crate) fn new(settings: &Settings) -> Congestion {
                Congestion::Stateful(Box::new(match settings.transport {
                    TransportKind::NewReno => return Congestion::NewReno(NewReno),
                    $(TransportKind::$kind => Stateful::$kind(super::$control::new(settings)),)+
                }))
            }

            /// Returns the transport; `None` for one of a caller.
            fn kind(&self) -> Option<TransportKind> {
                match self {
                    Congestion::NewReno(_) => Some(TransportKind::NewReno),
                    Congestion::Stateful(state) => match **state {
                        $(Stateful::$kind(_) => Some(TransportKind::$kind),)+
                        Stateful::Own(_) => None,
                    },
                }
            }
        }

        macro_rules! each {
            ($any:expr, $access:ident, $congestion:ident => $body:expr) => {
                match $any {
                    Congestion::NewReno($congestion) => $body,
                    Congestion::Stateful(state) => match state.$access() {
                        $(Stateful::$kind($congestion) => $body,)+
                        Stateful::Own($congestion) => $body,
                    },
                }
            };
        }
    };
}
transports!(congestion);

impl Congestion {
    /// Returns a copy of a caller's.
    pub(crate) fn own(control: &dyn OwnControl) -> Congestion {
        Congestion::Stateful(Box::new(Stateful::Own(control.boxed())))
    }

    fn is(&self, of: impl Fn(TransportKind) -> bool) -> bool {
        self.kind().is_some_and(of)
    }

    /// Returns true if it sets a rate and is not one of RDMA; losses then leave the window unchanged.
    pub(in crate::transport) fn sets_rate(&self) -> bool {
        self.is(TransportKind::sets_rate)
    }

    /// Returns true if it is one of RDMA.
    pub(in crate::transport) fn is_rdma(&self) -> bool {
        self.is(TransportKind::is_rdma)
    }

    /// Returns true if it is DCTCP.
    pub(in crate::transport) fn is_dctcp(&self) -> bool {
        self.is(TransportKind::is_dctcp)
    }
}

impl CongestionControl for Congestion {
    fn initial_window(&self, settings: &Settings) -> Window {
        each!(self, as_ref, congestion => congestion.initial_window(settings))
    }

    fn reads_telemetry(&self) -> bool {
        match self.kind() {
            Some(kind) => kind.reads_telemetry(),
            None => each!(self, as_ref, congestion => congestion.reads_telemetry()),
        }
    }

    #[inline]
    fn observe(&mut self, window: &mut Window, acked: &Acked, settings: &Settings) {
        each!(self, as_mut, congestion => congestion.observe(window, acked, settings));
    }

    #[inline]
    fn on_ack(&mut self, window: &mut Window, acked: &Acked, settings: &Settings) {
        each!(self, as_mut, congestion => congestion.on_ack(window, acked, settings));
    }

    fn ssthresh(&mut self, window: &Window, flight: u32, settings: &Settings) -> u32 {
        each!(self, as_mut, congestion => congestion.ssthresh(window, flight, settings))
    }

    fn window_after_mark(&mut self, window: &Window, flight: u32, settings: &Settings) -> u32 {
        each!(self, as_mut, congestion => congestion.window_after_mark(window, flight, settings))
    }

    fn pacer(&mut self) -> Option<&mut Pacer> {
        each!(self, as_mut, congestion => congestion.pacer())
    }

    fn advance(&mut self, now: Instant, settings: &Settings) -> Instant {
        each!(self, as_mut, congestion => congestion.advance(now, settings))
    }

    fn on_departure(&mut self, bytes: u32, now: Instant, settings: &Settings) {
        each!(self, as_mut, congestion => congestion.on_departure(bytes, now, settings));
    }

    fn on_timeout(&mut self, now: Instant, next: u32) {
        each!(self, as_mut, congestion => congestion.on_timeout(now, next));
    }
}
