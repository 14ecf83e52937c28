//! Loss recovery by time (RACK-TLP, RFC 8985), as in Linux since 2018. Its parts are [`Flight`], [`Rack`],
//! [`TailProbe`] and [`Undo`].

use super::repair::{Phase, Repair};
use super::{Ack, Expiry, Segment, Sender};
use crate::transport::flight::Flight;
use crate::transport::prr::{Bound, RateReduction};
use crate::transport::rack::{Rack, Situation};
use crate::transport::sack::{SackBlocks, split_duplicate};
use crate::transport::tail_probe::{TailProbe, Verdict, probe_timeout};
use crate::transport::undo::Undo;
use crate::transport::validation::is_limiting;
use crate::transport::{Acked, CongestionControl, Settings, Window};
use crate::units::{Duration, Instant};

/// State of a sender with RACK, from its first segment to the acknowledgement of its last one.
#[derive(Clone, Debug)]
pub(crate) struct RackRecovery {
    pub(super) repair: Repair,
    prr: RateReduction,
    flight: Flight,
    rack: Rack,
    probe: TailProbe,
    undo: Undo,
    /// Segment to be sent regardless of the window.
    forced: Option<Forced>,
    timers: Timers,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Forced {
    /// New data, or the last segment again.
    Probe,
    /// The first outstanding segment, after a timeout.
    First,
}

/// Expiry of each timer; [`Instant::MAX`] while it is off.
#[derive(Clone, Copy, Debug)]
struct Timers {
    retransmission: Instant,
    probe: Instant,
    reordering: Instant,
}

impl Timers {
    const OFF: Timers = Timers {
        retransmission: Instant::MAX,
        probe: Instant::MAX,
        reordering: Instant::MAX,
    };

    fn next(&self) -> Instant {
        self.retransmission.min(self.probe).min(self.reordering)
    }
}

impl Default for RackRecovery {
    fn default() -> RackRecovery {
        RackRecovery {
            repair: Repair::default(),
            prr: RateReduction::default(),
            flight: Flight::default(),
            rack: Rack::default(),
            probe: TailProbe::default(),
            undo: Undo::default(),
            forced: None,
            timers: Timers::OFF,
        }
    }
}

impl RackRecovery {
    /// Resets the value, but keeps the allocated memory.
    pub(super) fn clear(&mut self) {
        let mut flight = std::mem::take(&mut self.flight);
        flight.clear();
        *self = RackRecovery {
            flight,
            ..RackRecovery::default()
        };
    }

    /// Begins with the round-trip time of the handshake.
    pub(super) fn begin(&mut self, rtt: Duration) {
        self.rack.on_handshake(rtt);
    }

    /// Returns the expiry of the next timer; [`Instant::MAX`] while all are off.
    pub(super) fn deadline(&self) -> Instant {
        self.timers.next()
    }

    pub(super) fn lost(&self) -> u32 {
        self.flight.lost()
    }
}

impl Sender {
    fn situation(&self, phase: Phase, now: Instant) -> Situation {
        Situation {
            now,
            smoothed_rtt: self.rtt.smoothed(),
            recovering: phase != Phase::Open,
        }
    }
}

/// Sending.
impl Sender {
    /// Returns the segment to send, if the window has room for one or a timer demands it.
    pub(super) fn next_by_time(
        &mut self,
        time: &mut RackRecovery,
        now: Instant,
        settings: &Settings,
    ) -> Option<Segment> {
        let forced = time.forced.take();
        let index = match forced {
            Some(Forced::Probe) => self.probe_segment(settings),
            Some(Forced::First) => self.sent.una,
            None => self.next_by_flight(time, settings)?,
        };
        let retransmission = index < self.sent.next;
        let payload = self.payload(index, settings);
        time.flight.send(index, now);
        if !retransmission {
            self.sent.next += 1;
        } else if forced != Some(Forced::Probe) {
            time.undo.on_resend(now);
        }
        if forced == Some(Forced::Probe) {
            time.probe.send(self.sent.next, retransmission);
        }
        if let Phase::Recovery { .. } = time.repair.phase {
            time.prr.sent(payload);
        }
        let repairs_first = forced.is_none() && retransmission && index == self.sent.una;
        if time.timers.retransmission == Instant::MAX || settings.linux_rules && repairs_first {
            time.timers.retransmission = now + self.rtt.timeout(settings);
        }
        if !retransmission {
            self.schedule_probe(time.repair.phase, time, now, settings);
        }
        Some(Segment {
            index,
            payload,
            retransmission,
        })
    }

    /// Returns the first lost segment, otherwise new data, if the window has room for it.
    fn next_by_flight(&self, time: &mut RackRecovery, settings: &Settings) -> Option<u32> {
        let new = (self.sent.next < self.segments).then_some(self.sent.next);
        let index = time.flight.next_lost().or(new)?;
        let in_flight = u64::from(time.flight.pipe()) * u64::from(settings.mss);
        let wanted = in_flight + u64::from(self.payload(index, settings));
        (wanted <= u64::from(self.window.cwnd)).then_some(index)
    }

    /// Returns the segment of a probe: new data if there is some and the receiver has room for it, otherwise
    /// the last segment sent (TLP_send_probe, RFC 8985 §7.3).
    fn probe_segment(&self, settings: &Settings) -> u32 {
        let with_it = u64::from(self.sent.count() + 1) * u64::from(settings.mss);
        match self.sent.next < self.segments && with_it <= u64::from(settings.window_cap) {
            true => self.sent.next,
            false => self.sent.next - 1,
        }
    }

    /// Restarts the probe timer if a probe may be sent: no segment is reported, nothing is being repaired, and
    /// no probe is in flight (§7.2). It expires at the latest with the retransmission timer, and then
    /// replaces it.
    fn schedule_probe(
        &self,
        phase: Phase,
        time: &mut RackRecovery,
        now: Instant,
        settings: &Settings,
    ) {
        let outstanding = self.sent.count();
        let may = phase == Phase::Open
            && outstanding > 0
            && time.flight.sacked() == 0
            && time.flight.lost() == 0
            && !time.probe.is_under_way()
            && time.forced.is_none();
        let sampled = self.rtt.measured();
        let timeout = may.then(|| probe_timeout(sampled, outstanding, settings));
        time.timers.probe = timeout.map_or(Instant::MAX, |timeout| {
            now.saturating_add(timeout).min(time.timers.retransmission)
        });
    }
}

/// Acknowledgements.
impl Sender {
    pub(super) fn take_ack_by_time(
        &mut self,
        time: &mut RackRecovery,
        ack: &Ack<'_>,
        settings: &Settings,
    ) {
        let (duplicate, blocks) = split_duplicate(ack.next_expected, ack.blocks);
        let of_probe = duplicate.is_some_and(|index| time.probe.is(index));
        let flight_before = self.flight(settings);
        let (acked, delivered) = self.take_news(time, ack, blocks.as_ref(), settings);
        if acked.marked {
            self.answer_mark(&mut time.repair, settings);
        }
        self.judge_probe(time, duplicate, settings);
        if duplicate.is_some() && !of_probe {
            time.rack.on_duplicate(self.sent.next);
        }
        let reported = duplicate.is_some() && !of_probe;
        self.undo_needless(time, ack, &acked, reported, settings);
        let lost_before = time.flight.lost();
        let left = time
            .rack
            .detect(&mut time.flight, self.situation(time.repair.phase, ack.now));
        time.timers.reordering = left.map_or(Instant::MAX, |left| {
            ack.now
                .saturating_add(left)
                .saturating_add(settings.timer_slack)
        });
        let is_safe = acked.segments > 0 && time.flight.lost() <= lost_before;
        let bound = bound(is_safe, settings);
        let grows = self.change_phase(time, &acked, delivered, bound, settings);
        if grows && acked.segments > 0 && is_limiting(&self.window, flight_before, settings.mss) {
            self.grow(&acked, settings);
        }
        if delivered > 0 || acked.segments > 0 {
            self.schedule_probe(time.repair.phase, time, ack.now, settings);
        }
    }

    /// Removes delivered segments from the flight. Updates loss detection, the estimate of the round-trip time,
    /// and congestion control. Also returns the number of delivered segments.
    fn take_news<'a>(
        &mut self,
        time: &mut RackRecovery,
        ack: &Ack<'a>,
        blocks: Option<&SackBlocks>,
        settings: &Settings,
    ) -> (Acked<'a>, u32) {
        let advanced = self.sent.advance_by(ack.next_expected);
        self.sent.una += advanced;
        let rack = &mut time.rack;
        let mut earliest = Instant::MAX;
        let delivered = time.flight.acknowledge(self.sent.una, blocks, |segment| {
            rack.on_delivered(&segment, ack.stamp, ack.now);
            if !segment.retransmitted {
                earliest = earliest.min(segment.sent_at);
            }
        });
        rack.on_advance(self.sent.una);
        if advanced > 0 || delivered > 0 && time.forced == Some(Forced::Probe) {
            time.forced = None;
        }
        self.deadline = time.timers.retransmission;
        let acked = self.note(ack, advanced, false, settings);
        time.timers.retransmission = self.deadline;
        // A delivery of data that left before the first segment shows that the path still works.
        if settings.linux_rules && advanced == 0 && Some(earliest) < time.flight.first_sent_at() {
            time.timers.retransmission = ack.now + self.rtt.timeout(settings);
        }
        (acked, delivered)
    }

    fn judge_probe(
        &mut self,
        time: &mut RackRecovery,
        duplicate: Option<u32>,
        settings: &Settings,
    ) {
        let verdict = time.probe.judge(self.sent.una, duplicate);
        if verdict == Verdict::Repaired && time.repair.phase == Phase::Open {
            let flight = self.to_reduce(settings);
            let ssthresh = self.congestion.ssthresh(&self.window, flight, settings);
            let cwnd = ssthresh.min(settings.window_cap);
            self.window = Window { cwnd, ssthresh };
        }
    }

    /// Restores the window if the retransmissions of this recovery were needless, and ends the recovery.
    fn undo_needless(
        &mut self,
        time: &mut RackRecovery,
        ack: &Ack<'_>,
        acked: &Acked,
        reported: bool,
        settings: &Settings,
    ) {
        let early = match acked.segments {
            0 => None,
            _ => time.undo.on_advance(ack.stamp),
        };
        let by_report = reported.then(|| time.undo.on_duplicate()).flatten();
        let Some(before) = early.or(by_report) else {
            return;
        };
        self.window = Window {
            cwnd: self.window.cwnd.max(before.cwnd).min(settings.window_cap),
            ssthresh: before.ssthresh.max(self.window.ssthresh),
        };
        if let Phase::Recovery { .. } = time.repair.phase {
            time.rack.note_reordering();
        }
        if time.repair.phase != Phase::Open {
            time.repair.phase = Phase::Open;
            time.rack.on_recovered();
        }
        time.flight.find_all();
    }

    /// Enters, leaves or continues recovery. Returns true if the window may grow.
    fn change_phase(
        &mut self,
        time: &mut RackRecovery,
        acked: &Acked,
        delivered: u32,
        bound: Bound,
        settings: &Settings,
    ) -> bool {
        match time.repair.phase {
            Phase::Recovery { until } | Phase::Loss { until } if acked.una >= until => {
                if let Phase::Recovery { .. } = time.repair.phase {
                    self.window.cwnd = self.window.ssthresh.min(settings.window_cap);
                }
                time.repair.phase = Phase::Open;
                time.rack.on_recovered();
                if time.flight.lost() > 0 {
                    let delivered = match settings.linux_rules {
                        true => delivered,
                        false => 0,
                    };
                    self.enter_by_time(time, delivered, bound, settings);
                }
            }
            Phase::Recovery { .. } => {
                let pipe = time.flight.pipe();
                self.reduce_to(&mut time.prr, delivered, pipe, bound, settings);
            }
            Phase::Open if time.flight.lost() > 0 => {
                self.enter_by_time(time, delivered, bound, settings);
            }
            Phase::Loss { .. } | Phase::Open => return true,
        }
        false
    }

    fn enter_by_time(
        &mut self,
        time: &mut RackRecovery,
        delivered: u32,
        bound: Bound,
        settings: &Settings,
    ) {
        let flight = self.to_reduce(settings);
        time.undo = Undo::begin(self.window);
        time.probe.cancel();
        time.forced = None;
        time.timers.probe = Instant::MAX;
        self.window.ssthresh = self.congestion.ssthresh(&self.window, flight, settings);
        time.prr = RateReduction::begin(flight);
        time.repair.phase = Phase::Recovery {
            until: self.sent.next,
        };
        let pipe = time.flight.pipe();
        self.reduce_to(&mut time.prr, delivered, pipe, bound, settings);
    }
}

/// Returns the bound on sending in recovery after an acknowledgement. In Linux, an acknowledgement is safe
/// only if it advances and shows no further loss (RFC 9937, SafeACK); with RFC 6937 all are safe.
fn bound(is_safe: bool, settings: &Settings) -> Bound {
    match is_safe || !settings.linux_rules {
        true => Bound::SlowStart,
        false => Bound::Conservation,
    }
}

/// Timers.
impl Sender {
    /// Handles the expiry of the next timer.
    pub(super) fn expire_by_time(
        &mut self,
        time: &mut RackRecovery,
        now: Instant,
        settings: &Settings,
    ) -> Expiry {
        if time.timers.reordering <= now {
            self.end_patience(time, now, settings);
            Expiry::Reordering
        } else if time.timers.probe <= now {
            time.timers.probe = Instant::MAX;
            time.timers.retransmission = now + self.rtt.timeout(settings);
            time.forced = Some(Forced::Probe);
            Expiry::Probe
        } else {
            self.time_out_by_time(time, now, settings);
            Expiry::Timeout
        }
    }

    /// Handles the end of the time in which reordered segments may still arrive (RFC 8985 §6.2, step 5).
    fn end_patience(&mut self, time: &mut RackRecovery, now: Instant, settings: &Settings) {
        let situation = self.situation(time.repair.phase, now);
        let left = time.rack.detect(&mut time.flight, situation);
        time.timers.reordering = left.map_or(Instant::MAX, |left| {
            now.saturating_add(left)
                .saturating_add(settings.timer_slack)
        });
        match time.repair.phase {
            Phase::Open if time.flight.lost() > 0 => {
                // Linux reduces the window as if one segment had been delivered.
                let delivered = u32::from(settings.linux_rules);
                self.enter_by_time(time, delivered, bound(false, settings), settings);
            }
            Phase::Recovery { .. } => {
                let pipe = time.flight.pipe();
                self.reduce_to(&mut time.prr, 0, pipe, bound(false, settings), settings);
            }
            _ => {}
        }
    }

    /// Handles the expiry of the retransmission timer. The first segment is sent again at once. The window is
    /// that of slow start, on top of the segments that do not count as lost (RFC 8985 §6.3, RFC 5681 §3.1).
    fn time_out_by_time(&mut self, time: &mut RackRecovery, now: Instant, settings: &Settings) {
        if time.repair.phase == Phase::Open {
            time.undo = Undo::begin(self.window);
        }
        if !self.rtt.is_backed_off() {
            let flight = self.to_reduce(settings);
            self.window.ssthresh = self.congestion.ssthresh(&self.window, flight, settings);
        }
        self.congestion.on_timeout(now, self.sent.next);
        let situation = self.situation(time.repair.phase, now);
        time.rack.time_out(&mut time.flight, situation);
        let window = (time.flight.pipe() + 1).saturating_mul(settings.mss);
        self.window.restart(window, settings);
        time.repair.phase = Phase::Loss {
            until: self.sent.next,
        };
        time.probe.cancel();
        time.forced = Some(Forced::First);
        self.rtt.back_off();
        time.timers = Timers {
            retransmission: now + self.rtt.timeout(settings),
            ..Timers::OFF
        };
    }
}
