//! Figures in words: a unit each, few digits, the same in every form of the report.

/// What a figure counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Operations a second.
    Rate,
    /// Microseconds.
    Micros,
    /// A multiple of something.
    Times,
    /// Seconds.
    Seconds,
    /// Mebibytes.
    Mib,
}

impl Unit {
    /// The word by which the page's script knows it.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Rate => "rate",
            Unit::Micros => "micros",
            Unit::Times => "times",
            Unit::Seconds => "seconds",
            Unit::Mib => "mib",
        }
    }

    /// A figure of this unit, three digits of it.
    pub fn show(self, v: f64) -> String {
        match self {
            Unit::Rate => rate(v),
            Unit::Micros => duration(v * 1e3),
            Unit::Times => digits(v),
            Unit::Seconds => duration(v * 1e9),
            Unit::Mib if v >= 1024.0 => format!("{} GB", digits(v / 1024.0)),
            Unit::Mib => format!("{} MB", digits(v)),
        }
    }
}

/// Three significant digits; whole numbers from 100 on.
pub fn digits(v: f64) -> String {
    if v == 0.0 {
        return "0".into();
    }
    // The exponent after rounding: 9.996 is 10.0, not 10.00.
    let exponent = format!("{:.2e}", v.abs()).split_once('e').map_or(0, |(_, e)| e.parse().unwrap_or(0));
    let places = (2i32 - exponent).clamp(0, 9) as usize;
    format!("{v:.places$}")
}

fn rate(v: f64) -> String {
    match v {
        v if v >= 999.5e6 => format!("{} G/s", digits(v / 1e9)),
        v if v >= 999.5e3 => format!("{} M/s", digits(v / 1e6)),
        v if v >= 999.5 => format!("{} k/s", digits(v / 1e3)),
        v => format!("{}/s", digits(v)),
    }
}

/// Nanoseconds with a fitting unit.
pub fn duration(ns: f64) -> String {
    match ns {
        v if v < 999.5 => format!("{} ns", digits(v)),
        v if v < 999.5e3 => format!("{} µs", digits(v / 1e3)),
        v if v < 999.5e6 => format!("{} ms", digits(v / 1e6)),
        v => format!("{} s", digits(v / 1e9)),
    }
}

/// A ratio: `4.59×`, `12.3×`, `120×`, `0.081×`.
pub fn ratio(v: f64) -> String {
    match v {
        v if v >= 99.5 => format!("{v:.0}×"),
        v if v >= 9.995 => format!("{v:.1}×"),
        v if v >= 0.0995 => format!("{v:.2}×"),
        v => format!("{v:.3}×"),
    }
}

/// `1234567` as `1,234,567`.
pub fn thousands(v: f64) -> String {
    let digits = format!("{v:.0}");
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// Bytes, in powers of 1024.
pub fn bytes(n: u64) -> String {
    match n {
        n if n >= 1 << 30 => format!("{} GB", digits(n as f64 / f64::from(1 << 30))),
        n if n >= 1 << 20 => format!("{} MB", digits(n as f64 / f64::from(1 << 20))),
        n if n >= 1 << 10 => format!("{} KB", digits(n as f64 / 1024.0)),
        n => format!("{n} B"),
    }
}

/// Seconds since 1970 as a date and time of UTC, such as `2026-11-21 14:04 UTC`.
pub fn date(unix_s: u64) -> String {
    // Days are counted in eras of 400 years that begin on the 1st of March, so that a leap day ends its year.
    let days = unix_s / 86_400 + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let (d, m) = (of_year - (153 * month + 2) / 5 + 1, if month < 10 { month + 3 } else { month - 9 });
    let y = era * 400 + year + u64::from(m <= 2);
    let s = unix_s % 86_400;
    format!("{y}-{m:02}-{d:02} {:02}:{:02} UTC", s / 3600, s / 60 % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits_and_a_unit() {
        assert_eq!(Unit::Rate.show(1_754_254.9), "1.75 M/s");
        assert_eq!(Unit::Rate.show(999_900.0), "1.00 M/s");
        assert_eq!(Unit::Rate.show(86.4), "86.4/s");
        assert_eq!(Unit::Micros.show(0.685), "685 ns");
        assert_eq!(Unit::Micros.show(41_727.8), "41.7 ms");
        assert_eq!(Unit::Seconds.show(0.0124), "12.4 ms");
        assert_eq!(Unit::Times.show(2.0912), "2.09");
        assert_eq!(Unit::Times.show(0.0), "0");
        assert_eq!(Unit::Mib.show(2048.0), "2.00 GB");
        assert_eq!(digits(9.996), "10.0");
        assert_eq!(digits(123_456.0), "123456");
        assert_eq!(digits(0.00123), "0.00123");
    }

    #[test]
    fn ratios_numbers_and_sizes_read_well() {
        let shown: Vec<String> = [120.4, 12.34, 4.592, 0.815, 0.0811].into_iter().map(ratio).collect();
        assert_eq!(shown, ["120×", "12.3×", "4.59×", "0.81×", "0.081×"]);
        assert_eq!(thousands(1_234_567.0), "1,234,567");
        assert_eq!(thousands(12.0), "12");
        assert_eq!(bytes(64 << 20), "64.0 MB");
        assert_eq!(bytes(100), "100 B");
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        // As `date -u -d @N` prints them.
        assert_eq!(date(0), "1970-01-01 00:00 UTC");
        assert_eq!(date(1_795_297_880), "2026-11-21 21:51 UTC");
        assert_eq!(date(951_782_400), "2000-02-29 00:00 UTC");
        assert_eq!(date(4_107_542_400), "2100-03-01 00:00 UTC");
    }
}
