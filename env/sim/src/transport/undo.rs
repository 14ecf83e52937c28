//! Undoes the reduction of a window if no segment had been lost. The evidence is the timestamp that an
//! acknowledgement echoes (Eifel, RFC 3522 and RFC 4015), or the duplicates that the receiver reports (RFC
//! 3708).

use super::Window;
use crate::units::Instant;

/// State that is needed to undo the last reduction.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Undo {
    /// The window before the reduction; `None` if there is nothing to undo.
    before: Option<Window>,
    /// Time at which the first retransmission left.
    first: Option<Instant>,
    /// Number of retransmissions that the receiver has not reported as duplicates.
    unreported: u32,
}

impl Undo {
    /// Records the window before a reduction.
    pub(crate) fn begin(window: Window) -> Undo {
        Undo {
            before: Some(window),
            ..Undo::default()
        }
    }

    /// Records a retransmission.
    pub(crate) fn on_resend(&mut self, now: Instant) {
        if self.before.is_some() {
            self.first.get_or_insert(now);
            self.unreported += 1;
        }
    }

    /// Handles a report that the receiver had a retransmitted segment already. If all retransmissions have
    /// been reported, none was necessary: returns the window before the reduction.
    pub(crate) fn on_duplicate(&mut self) -> Option<Window> {
        self.first?;
        self.unreported = self.unreported.saturating_sub(1);
        match self.unreported {
            0 => self.take(),
            _ => None,
        }
    }

    /// Handles an acknowledgement of new data that echoes `echo`. If the acknowledged segment left before the
    /// first retransmission, the first segment had not been lost: returns the window before the reduction.
    pub(crate) fn on_advance(&mut self, echo: Instant) -> Option<Window> {
        match self.first {
            Some(first) if echo < first => self.take(),
            _ => None,
        }
    }

    fn take(&mut self) -> Option<Window> {
        std::mem::take(self).before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Window = Window {
        cwnd: 10_000,
        ssthresh: 20_000,
    };

    fn at(us: u64) -> Instant {
        Instant::from_us(us)
    }

    #[test]
    fn an_echo_of_the_first_transmission_undoes() {
        let mut undo = Undo::begin(WINDOW);
        assert_eq!(undo.on_advance(at(5)), None);
        undo.on_resend(at(10));
        undo.on_resend(at(20));
        assert_eq!(undo.on_advance(at(10)), None);
        assert_eq!(undo.on_advance(at(9)), Some(WINDOW));
        assert_eq!(undo.on_advance(at(9)), None);
    }

    #[test]
    fn duplicates_of_all_retransmissions_undo() {
        let mut undo = Undo::begin(WINDOW);
        assert_eq!(undo.on_duplicate(), None);
        undo.on_resend(at(10));
        undo.on_resend(at(20));
        assert_eq!(undo.on_duplicate(), None);
        assert_eq!(undo.on_duplicate(), Some(WINDOW));
        assert_eq!(undo.on_duplicate(), None);
    }
}
