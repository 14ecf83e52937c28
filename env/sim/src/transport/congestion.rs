//! The congestion controls as one enum, without dynamic dispatch on the packet path.

use super::{
    Acked, CongestionControl, Cubic, CubicNs3, Dcqcn, DcqcnReverie, Dctcp, DctcpNs3, Hpcc, NewReno,
    Pacer, PowerTcp, PowerTcpRdma, Settings, ThetaPowerTcp, Timely, TransportKind, Window,
};
use crate::units::Time;

/// The congestion control of one flow. Variants with state are boxed, so that it takes eight bytes in
/// every flow.
#[derive(Clone, Debug)]
pub(crate) enum Congestion {
    NewReno(NewReno),
    Stateful(Box<Stateful>),
}

#[derive(Clone, Debug)]
pub(crate) enum Stateful {
    Cubic(Cubic),
    CubicNs3(CubicNs3),
    Dctcp(Dctcp),
    DctcpNs3(DctcpNs3),
    /// Boxed, because the records of a path would make all flows larger.
    PowerTcp(Box<PowerTcp>),
    ThetaPowerTcp(ThetaPowerTcp),
    Timely(Timely),
    Hpcc(Box<Hpcc>),
    Dcqcn(Dcqcn),
    DcqcnReverie(DcqcnReverie),
    PowerTcpRdma(Box<PowerTcpRdma>),
    #[cfg(test)]
    ConstantRate(super::testing::ConstantRate),
}

impl Congestion {
    pub(crate) fn new(settings: &Settings) -> Congestion {
        #[cfg(test)]
        if settings.constant_rate {
            return Congestion::Stateful(Box::new(Stateful::ConstantRate(Default::default())));
        }
        Congestion::Stateful(Box::new(match settings.transport {
            TransportKind::NewReno => return Congestion::NewReno(NewReno),
            TransportKind::Cubic | TransportKind::Linux => Stateful::Cubic(Cubic::new(settings)),
            TransportKind::CubicNs3 => Stateful::CubicNs3(CubicNs3::default()),
            TransportKind::Dctcp if settings.is_ns3() => Stateful::DctcpNs3(DctcpNs3::default()),
            TransportKind::Dctcp | TransportKind::LinuxDctcp => Stateful::Dctcp(Dctcp::default()),
            TransportKind::PowerTcp => Stateful::PowerTcp(Box::new(PowerTcp::new(settings))),
            TransportKind::ThetaPowerTcp => Stateful::ThetaPowerTcp(ThetaPowerTcp::new(settings)),
            TransportKind::Timely => Stateful::Timely(Timely::new(settings)),
            TransportKind::Hpcc => Stateful::Hpcc(Box::new(Hpcc::new(settings))),
            TransportKind::Dcqcn => Stateful::Dcqcn(Dcqcn::new(settings)),
            TransportKind::DcqcnReverie => Stateful::DcqcnReverie(DcqcnReverie::new(settings)),
            TransportKind::PowerTcpRdma => {
                Stateful::PowerTcpRdma(Box::new(PowerTcpRdma::new(settings)))
            }
        }))
    }

    /// Returns true if it sets a rate and is not one of RDMA; losses then leave the window unchanged.
    pub(super) fn sets_rate(&self) -> bool {
        let Congestion::Stateful(state) = self else {
            return false;
        };
        matches!(
            **state,
            Stateful::PowerTcp(_)
                | Stateful::ThetaPowerTcp(_)
                | Stateful::Timely(_)
                | Stateful::Hpcc(_)
        )
    }

    /// Returns true if it reads the telemetry records that switches write into packets.
    pub(super) fn reads_telemetry(&self) -> bool {
        let Congestion::Stateful(state) = self else {
            return false;
        };
        matches!(
            **state,
            Stateful::PowerTcp(_) | Stateful::Hpcc(_) | Stateful::PowerTcpRdma(_)
        )
    }

    /// Returns the transport if it is one of RDMA.
    pub(super) fn rdma(&self) -> Option<TransportKind> {
        let Congestion::Stateful(state) = self else {
            return None;
        };
        match **state {
            Stateful::Dcqcn(_) => Some(TransportKind::Dcqcn),
            Stateful::DcqcnReverie(_) => Some(TransportKind::DcqcnReverie),
            Stateful::PowerTcpRdma(_) => Some(TransportKind::PowerTcpRdma),
            _ => None,
        }
    }

    /// Returns true if it is DCTCP, that of ns-3 or the other one.
    pub(super) fn is_dctcp(&self) -> bool {
        let Congestion::Stateful(state) = self else {
            return false;
        };
        matches!(**state, Stateful::Dctcp(_) | Stateful::DctcpNs3(_))
    }

    /// Returns true if it is the DCTCP of ns-3.
    pub(super) fn is_dctcp_ns3(&self) -> bool {
        matches!(self, Congestion::Stateful(state) if matches!(**state, Stateful::DctcpNs3(_)))
    }
}

macro_rules! each {
    ($any:expr, $congestion:ident => $body:expr) => {
        match $any {
            Congestion::NewReno($congestion) => $body,
            Congestion::Stateful(state) => match &mut **state {
                Stateful::Cubic($congestion) => $body,
                Stateful::CubicNs3($congestion) => $body,
                Stateful::Dctcp($congestion) => $body,
                Stateful::DctcpNs3($congestion) => $body,
                Stateful::PowerTcp($congestion) => $body,
                Stateful::ThetaPowerTcp($congestion) => $body,
                Stateful::Timely($congestion) => $body,
                Stateful::Hpcc($congestion) => $body,
                Stateful::Dcqcn($congestion) => $body,
                Stateful::DcqcnReverie($congestion) => $body,
                Stateful::PowerTcpRdma($congestion) => $body,
                #[cfg(test)]
                Stateful::ConstantRate($congestion) => $body,
            },
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

    fn pacer(&mut self) -> Option<&mut Pacer> {
        each!(self, congestion => congestion.pacer())
    }

    fn advance(&mut self, now: Time, settings: &Settings) -> Time {
        each!(self, congestion => congestion.advance(now, settings))
    }

    fn on_departure(&mut self, bytes: u32, now: Time, settings: &Settings) {
        each!(self, congestion => congestion.on_departure(bytes, now, settings));
    }

    fn on_timeout(&mut self, now: Time, next: u32) {
        each!(self, congestion => congestion.on_timeout(now, next));
    }
}
