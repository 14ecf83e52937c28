//! Any of the congestion controls, without dynamic dispatch on the packet path.

use super::{
    Acked, CongestionControl, Cubic, CubicNs3, Dctcp, DctcpNs3, NewReno, Settings, TransportKind,
    Window,
};
use crate::units::Time;

/// The congestion control of one flow. What has a large state is boxed, so that NewReno's flows
/// stay small.
#[derive(Clone, Debug)]
pub(crate) enum Congestion {
    NewReno(NewReno),
    Cubic(Box<Cubic>),
    CubicNs3(Box<CubicNs3>),
    Dctcp(Box<Dctcp>),
    DctcpNs3(Box<DctcpNs3>),
}

impl Congestion {
    pub(crate) fn new(settings: &Settings) -> Congestion {
        match settings.transport {
            TransportKind::NewReno => Congestion::NewReno(NewReno),
            TransportKind::Cubic => Congestion::Cubic(Box::new(Cubic::new(settings))),
            TransportKind::CubicNs3 => Congestion::CubicNs3(Box::default()),
            TransportKind::Dctcp if settings.is_ns3() => Congestion::DctcpNs3(Box::default()),
            TransportKind::Dctcp => Congestion::Dctcp(Box::default()),
        }
    }
}

macro_rules! each {
    ($any:expr, $congestion:ident => $body:expr) => {
        match $any {
            Congestion::NewReno($congestion) => $body,
            Congestion::Cubic($congestion) => $body,
            Congestion::CubicNs3($congestion) => $body,
            Congestion::Dctcp($congestion) => $body,
            Congestion::DctcpNs3($congestion) => $body,
        }
    };
}

impl CongestionControl for Congestion {
    #[inline]
    fn observe(&mut self, window: &mut Window, acked: &Acked, settings: &Settings) {
        each!(self, congestion => congestion.observe(window, acked, settings));
    }

    #[inline]
    fn on_ack(&mut self, window: &mut Window, acked: &Acked, settings: &Settings) {
        each!(self, congestion => congestion.on_ack(window, acked, settings));
    }

    fn ssthresh(&mut self, window: &Window, flight: u32, settings: &Settings) -> u32 {
        each!(self, congestion => congestion.ssthresh(window, flight, settings))
    }

    fn window_after_mark(&mut self, window: &Window, flight: u32, settings: &Settings) -> u32 {
        each!(self, congestion => congestion.window_after_mark(window, flight, settings))
    }

    fn on_timeout(&mut self, now: Time, next: u32) {
        each!(self, congestion => congestion.on_timeout(now, next));
    }
}
