//! Numbers as text for people.

use crate::stats::Estimate;

/// The text for a missing number.
pub const NONE: &str = "–";

/// Formats a quantity with at least three significant digits: 0.0123, 1.23, 12.3, 123, 1234.
pub fn significant(value: f64) -> String {
    let magnitude = value.abs();
    let decimals = match magnitude {
        m if !m.is_finite() => return NONE.to_string(),
        m if m >= 1e12 => return format!("{value:.2e}").replace('-', "−"),
        m if m == 0.0 || m >= 99.95 => 0,
        m if m >= 9.995 => 1,
        m if m >= 0.9995 => 2,
        m if m >= 0.09995 => 3,
        _ => 4,
    };
    format!("{value:.decimals$}").replace('-', "−")
}

/// Formats a number that may be missing with [`significant`].
pub fn optional(value: Option<f64>) -> String {
    value.map_or_else(|| NONE.to_string(), significant)
}

/// Formats a ratio with three decimals.
pub fn ratio(value: Option<f64>) -> String {
    value.map_or_else(|| NONE.to_string(), |v| format!("{v:.3}"))
}

/// Formats the bounds of an interval: `0.801–0.853`.
pub fn bounds(interval: &Estimate) -> String {
    format!("{:.3}–{:.3}", interval.low, interval.high)
}

/// Formats a ratio with its interval: `0.827 [0.801–0.853]`.
pub fn interval(value: Option<&Estimate>) -> String {
    value.map_or_else(
        || NONE.to_string(),
        |i| format!("{:.3} [{}]", i.centre, bounds(i)),
    )
}

/// Formats a share as a whole percentage, with a non-breaking space.
pub fn percent(share: Option<f64>) -> String {
    share.filter(|s| s.is_finite()).map_or_else(
        || NONE.to_string(),
        |s| {
            let text = format!("{:.0}\u{a0}%", s * 100.0);
            if text == "-0\u{a0}%" {
                "0\u{a0}%".to_string()
            } else {
                text.replace('-', "−")
            }
        },
    )
}

/// Formats the distance of a ratio from 1 as a percentage without sign: `17.3 %`.
pub fn change(ratio: f64) -> String {
    format!("{:.1}\u{a0}%", (1.0 - ratio).abs() * 100.0)
}

/// Formats the label of an axis tick, without trailing zeros.
pub fn tick(value: f64) -> String {
    let rounded = (value * 1e6).round() / 1e6;
    if rounded == 0.0 {
        "0".to_string()
    } else {
        format!("{rounded}").replace('-', "−")
    }
}

/// Formats a count in groups of three digits.
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut grouped = String::with_capacity(digits.len() * 2);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) && digits.len() > 4 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Formats bytes with a decimal prefix: 1 KB is 1000 B.
pub fn bytes(value: u64) -> String {
    match value {
        0..1_000 => format!("{value} B"),
        1_000..999_500 => format!("{} KB", significant(value as f64 / 1e3)),
        _ => format!("{} MB", significant(value as f64 / 1e6)),
    }
}

/// Formats a line rate with a prefix.
pub fn rate(bits_per_second: u64) -> String {
    let trimmed = |value: f64, unit: &str| format!("{value} {unit}");
    match bits_per_second {
        0..1_000_000 => format!("{bits_per_second} bit/s"),
        1_000_000..1_000_000_000 => trimmed(bits_per_second as f64 / 1e6, "Mbit/s"),
        _ => trimmed(bits_per_second as f64 / 1e9, "Gbit/s"),
    }
}

/// Formats a time given in microseconds, in µs, ms or s.
pub fn microseconds(us: u64) -> String {
    match us {
        0..1_000 => format!("{us} µs"),
        1_000..1_000_000 => format!("{} ms", us as f64 / 1e3),
        _ => format!("{} s", us as f64 / 1e6),
    }
}

/// Formats a wall-clock time given in seconds, in s or min.
pub fn seconds(s: f64) -> String {
    if s < 60.0 {
        format!("{} s", significant(s))
    } else {
        format!(
            "{:.0} min {:02.0} s",
            (s / 60.0).floor(),
            (s % 60.0).floor()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_wherever_the_point_is() {
        let cases = [
            (0.0, "0"),
            (0.01234, "0.0123"),
            (0.1234, "0.123"),
            (1.0, "1.00"),
            (9.999, "10.0"),
            (12.34, "12.3"),
            (99.96, "100"),
            (1234.5, "1234"),
            (-0.5, "−0.500"),
        ];
        for (value, expected) in cases {
            assert_eq!(significant(value), expected, "{value}");
        }
        assert_eq!(significant(f64::NAN), NONE);
    }

    #[test]
    fn counts_shares_and_units() {
        assert_eq!(count(1234), "1234");
        assert_eq!(count(12345), "12,345");
        assert_eq!(count(1234567), "1,234,567");
        assert_eq!(percent(Some(0.914)), "91\u{a0}%");
        assert_eq!(percent(Some(-0.001)), "0\u{a0}%");
        assert_eq!(percent(Some(-0.25)), "−25\u{a0}%");
        assert_eq!(percent(None), NONE);
        assert_eq!(change(0.8271), "17.3\u{a0}%");
        assert_eq!(bytes(1_000_000), "1.00 MB");
        assert_eq!(bytes(999_800), "1.00 MB");
        assert_eq!(rate(1_000_000_000), "1 Gbit/s");
        assert_eq!(microseconds(200_000), "200 ms");
        assert_eq!(seconds(12.34), "12.3 s");
        assert_eq!(seconds(754.0), "12 min 34 s");
    }

    #[test]
    fn intervals() {
        let value = Estimate {
            centre: 0.8271,
            low: 0.8,
            high: 0.8534,
        };
        assert_eq!(interval(Some(&value)), "0.827 [0.800–0.853]");
        assert_eq!(interval(None), NONE);
    }
}
