//! Congestion window validation: a window that the flow does not fill does not grow (RFC 7661, in
//! the form of Linux's `tcp_is_cwnd_limited`).

use super::Window;

/// Returns true if `flight`, the outstanding bytes before an acknowledgement, shows that the window limits
/// the flow. In slow start, that is if more than half of the window is in use, otherwise if all of it
/// except for less than a segment is in use.
pub(super) fn is_limiting(window: &Window, flight: u32, mss: u32) -> bool {
    match window.in_slow_start() {
        true => window.cwnd < flight.saturating_mul(2),
        false => window.cwnd < flight.saturating_add(mss),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_window_in_slow_start_and_else_the_whole() {
        let window = |ssthresh| Window {
            cwnd: 10_000,
            ssthresh,
        };
        assert!(is_limiting(&window(u32::MAX), 5_001, 1_000));
        assert!(!is_limiting(&window(u32::MAX), 5_000, 1_000));
        assert!(is_limiting(&window(10_000), 9_001, 1_000));
        assert!(!is_limiting(&window(10_000), 9_000, 1_000));
    }
}
