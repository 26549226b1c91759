//! Quantities as people write them: `50us`, `1Gbps`, `256KB`, `100p`.

use crate::{Bytes, Duration, Rate};
use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;
use thiserror::Error;

/// Why a text is not a quantity.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ParseUnitError {
    /// The text does not start with a number.
    #[error("`{text}` is not {what}: it should be a number and a unit, such as `{example}`")]
    NoNumber {
        /// What was written.
        text: String,
        /// The dimension that was expected, with its article.
        what: &'static str,
        /// A text that would have been accepted.
        example: &'static str,
    },
    /// The number stands alone.
    #[error("`{text}` has no unit: {what} needs one, such as `{example}` ({units})")]
    NoUnit {
        /// What was written.
        text: String,
        /// The dimension that was expected, with its article.
        what: &'static str,
        /// A text that would have been accepted.
        example: &'static str,
        /// The units there are.
        units: String,
    },
    /// The unit is of another dimension or unknown.
    #[error("`{text}`: `{unit}` is not a unit of {what}; use one of {units}")]
    UnknownUnit {
        /// What was written.
        text: String,
        /// The part that was taken for the unit.
        unit: String,
        /// The dimension that was expected, with its article.
        what: &'static str,
        /// The units there are.
        units: String,
    },
    /// A rate in bytes. Units are matched whatever their case, but not here: `GBps` is eight times `Gbps`.
    #[error(
        "`{text}`: `{unit}` reads as bytes per second; rates are in bits: write {name}, and eight times the number if bytes were meant"
    )]
    BytesForBits {
        /// What was written.
        text: String,
        /// The part that was taken for the unit.
        unit: String,
        /// The unit to write.
        name: &'static str,
    },
    /// A size in bits.
    #[error(
        "`{text}`: `{unit}` reads as bits; sizes are in bytes: write {name}, and an eighth of the number if bits were meant"
    )]
    BitsForBytes {
        /// What was written.
        text: String,
        /// The part that was taken for the unit.
        unit: String,
        /// The unit to write.
        name: &'static str,
    },
    /// Negative, or not representable.
    #[error("`{text}` is out of range for {what}: it must be {range}")]
    OutOfRange {
        /// What was written.
        text: String,
        /// The dimension that was expected, with its article.
        what: &'static str,
        /// From least to most.
        range: &'static str,
    },
}

/// A buffer or threshold: so many packets or so many bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QueueLimit {
    /// Packets, whatever their size.
    Packets(u32),
    /// Bytes on the wire.
    Bytes(Bytes),
}

impl fmt::Display for QueueLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QueueLimit::Packets(n) => write!(f, "{n}p"),
            QueueLimit::Bytes(b) => b.fmt(f),
        }
    }
}

struct Dimension {
    what: &'static str,
    example: &'static str,
    /// Name and value in the base unit (ps, bits/s, bytes). Matched exactly, then ignoring case.
    units: &'static [(&'static str, f64)],
    range: &'static str,
}

const TIME: Dimension = Dimension {
    what: "a time",
    example: "50us",
    units: &[("ps", 1.0), ("ns", 1e3), ("us", 1e6), ("µs", 1e6), ("ms", 1e9), ("s", 1e12), ("min", 60e12)],
    range: "from 0 to 18446744s",
};
const RATE: Dimension = Dimension {
    what: "a rate",
    example: "10Gbps",
    units: &[("bps", 1.0), ("kbps", 1e3), ("Mbps", 1e6), ("Gbps", 1e9), ("Tbps", 1e12)],
    range: "from 0 to 18446744Tbps",
};
const SIZE: Dimension = Dimension {
    what: "a size",
    example: "256KB",
    units: &[
        ("B", 1.0),
        ("KB", 1e3),
        ("MB", 1e6),
        ("GB", 1e9),
        ("TB", 1e12),
        ("KiB", 1024.0),
        ("MiB", 1_048_576.0),
        ("GiB", 1_073_741_824.0),
    ],
    range: "from 0 to 18446744TB",
};

impl Dimension {
    fn unit_names(&self) -> String {
        self.units.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
    }

    /// The value in the base unit, rounded to a whole number of it.
    fn parse(&self, text: &str) -> Result<u64, ParseUnitError> {
        let trimmed = text.trim();
        let split = trimmed
            .char_indices()
            .find(|&(i, c)| {
                let exponent = (c == 'e' || c == 'E')
                    && i > 0
                    && trimmed[i + 1..].starts_with(|d: char| d.is_ascii_digit() || d == '-' || d == '+');
                !(c.is_ascii_digit() || matches!(c, '.' | '_' | '-' | '+') || exponent)
            })
            .map_or(trimmed.len(), |(i, _)| i);
        let (number, unit) = (trimmed[..split].replace('_', ""), trimmed[split..].trim());
        let value: f64 = number.parse().map_err(|_| ParseUnitError::NoNumber {
            text: text.to_owned(),
            what: self.what,
            example: self.example,
        })?;
        if unit.is_empty() {
            return Err(ParseUnitError::NoUnit {
                text: text.to_owned(),
                what: self.what,
                example: self.example,
                units: self.unit_names(),
            });
        }
        let found = self
            .units
            .iter()
            .find(|(name, _)| *name == unit)
            .or_else(|| self.units.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit)));
        if let Some((name, _)) = found
            && name.contains('B') != unit.contains('B')
            && name.contains(['b', 'B'])
        {
            let (text, unit) = (text.to_owned(), unit.to_owned());
            return Err(if name.contains('b') {
                ParseUnitError::BytesForBits { text, unit, name }
            } else {
                ParseUnitError::BitsForBytes { text, unit, name }
            });
        }
        let scale = found.map(|(_, scale)| *scale).ok_or_else(|| ParseUnitError::UnknownUnit {
            text: text.to_owned(),
            unit: unit.to_owned(),
            what: self.what,
            units: self.unit_names(),
        })?;
        let base = libm::round(value * scale);
        if base.is_finite() && base >= 0.0 && base < u64::MAX as f64 {
            Ok(base as u64)
        } else {
            Err(ParseUnitError::OutOfRange { text: text.to_owned(), what: self.what, range: self.range })
        }
    }
}

impl FromStr for Duration {
    type Err = ParseUnitError;
    fn from_str(text: &str) -> Result<Duration, ParseUnitError> {
        TIME.parse(text).map(Duration::from_ps)
    }
}
impl FromStr for Rate {
    type Err = ParseUnitError;
    fn from_str(text: &str) -> Result<Rate, ParseUnitError> {
        RATE.parse(text).map(Rate::from_bps)
    }
}
impl FromStr for Bytes {
    type Err = ParseUnitError;
    fn from_str(text: &str) -> Result<Bytes, ParseUnitError> {
        SIZE.parse(text).map(Bytes::new)
    }
}
impl FromStr for QueueLimit {
    type Err = ParseUnitError;
    fn from_str(text: &str) -> Result<QueueLimit, ParseUnitError> {
        let trimmed = text.trim();
        let packets = ["packets", "packet", "pkts", "p"].iter().find_map(|suffix| trimmed.strip_suffix(suffix));
        match packets.map(|n| n.trim().replace('_', "").parse::<u32>()) {
            Some(Ok(n)) => Ok(QueueLimit::Packets(n)),
            Some(Err(_)) => {
                let (what, range) = ("a queue length in packets", "a whole number from 0 to 4294967295");
                Err(ParseUnitError::OutOfRange { text: text.to_owned(), what, range })
            }
            None => SIZE.parse(text).map(|b| QueueLimit::Bytes(Bytes::new(b))).map_err(|e| match e {
                ParseUnitError::NoUnit { text, .. } => ParseUnitError::NoUnit {
                    text,
                    what: "a queue length",
                    example: "100p",
                    units: format!("p for packets, or {}", SIZE.unit_names()),
                },
                other => other,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn units_parse_as_people_write_them() {
        assert_eq!("1Gbps".parse::<Rate>().unwrap(), Rate::gbps(1));
        assert_eq!("1.1Gbps".parse::<Rate>().unwrap(), Rate::from_bps(1_100_000_000));
        assert_eq!("50 us".parse::<Duration>().unwrap(), Duration::us(50));
        assert_eq!("1e-3s".parse::<Duration>().unwrap(), Duration::ms(1));
        assert_eq!("256KB".parse::<Bytes>().unwrap(), Bytes::kb(256));
        assert_eq!("256KiB".parse::<Bytes>().unwrap(), Bytes::kib(256));
        assert_eq!("100p".parse::<QueueLimit>().unwrap(), QueueLimit::Packets(100));
        assert_eq!("350KB".parse::<QueueLimit>().unwrap(), QueueLimit::Bytes(Bytes::kb(350)));
    }

    #[test]
    fn a_wrong_quantity_says_what_would_be_right() {
        let says = |r: Result<Duration, ParseUnitError>| r.unwrap_err().to_string();
        assert_eq!(
            says("50".parse()),
            "`50` has no unit: a time needs one, such as `50us` (ps, ns, us, µs, ms, s, min)"
        );
        assert_eq!(
            says("5Gbps".parse()),
            "`5Gbps`: `Gbps` is not a unit of a time; use one of ps, ns, us, µs, ms, s, min"
        );
        assert_eq!(says("-5us".parse()), "`-5us` is out of range for a time: it must be from 0 to 18446744s");
        assert_eq!(says("fast".parse()), "`fast` is not a time: it should be a number and a unit, such as `50us`");
        assert_eq!(says("éus".parse()), "`éus` is not a time: it should be a number and a unit, such as `50us`");
    }

    #[test]
    fn bits_are_not_taken_for_bytes() {
        let told = "10GBps".parse::<Rate>().unwrap_err().to_string();
        assert_eq!(
            told,
            "`10GBps`: `GBps` reads as bytes per second; rates are in bits: write Gbps, and eight times the number if bytes were meant"
        );
        let told = "64 Kb".parse::<QueueLimit>().unwrap_err().to_string();
        assert_eq!(
            told,
            "`64 Kb`: `Kb` reads as bits; sizes are in bytes: write KB, and an eighth of the number if bits were meant"
        );
        assert_eq!("10gbps".parse(), Ok(Rate::gbps(10)));
        assert_eq!(
            "64kib".parse::<Bytes>().map_err(|e| e.to_string()).unwrap_err().split(';').next(),
            Some("`64kib`: `kib` reads as bits")
        );
        assert_eq!("64kB".parse(), Ok(Bytes::new(64_000)));
    }

    #[test]
    fn a_quantity_out_of_range_tells_the_range() {
        for (text, range) in [("1.5p", "a whole number from 0 to 4294967295"), ("99999999TB", "from 0 to 18446744TB")] {
            let told = text.parse::<QueueLimit>().unwrap_err().to_string();
            assert!(told.ends_with(&format!("it must be {range}")), "{told}");
        }
        assert!("1e30Gbps".parse::<Rate>().unwrap_err().to_string().ends_with("from 0 to 18446744Tbps"));
    }
}
