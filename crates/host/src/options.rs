//! Options of routes, as `ip route` takes them: which metric each is, and how its value is written.

use crate::error::Error;
use crate::netlink::Attribute;
use crate::routes::Route;

const RTAX_LOCK: u16 = 1;
const RTAX_WINDOW: u16 = 3;
const RTAX_INITCWND: u16 = 11;
const RTAX_FEATURES: u16 = 12;
const RTAX_RTO_MIN: u16 = 13;
const RTAX_INITRWND: u16 = 14;
const RTAX_QUICKACK: u16 = 15;
const RTAX_CC_ALGO: u16 = 16;

/// `RTAX_FEATURE_ECN`.
const ECN: u32 = 1;

/// What a value is.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    Number,
    /// Milliseconds, which the kernel heeds only where the metric is locked.
    Time,
    Name,
    Feature,
}

/// Every option that fanin advises (`fanin.settings.hosts`).
const OPTIONS: &[(&str, u16, Form)] = &[
    ("window", RTAX_WINDOW, Form::Number),
    ("initcwnd", RTAX_INITCWND, Form::Number),
    ("features", RTAX_FEATURES, Form::Feature),
    ("rto_min", RTAX_RTO_MIN, Form::Time),
    ("initrwnd", RTAX_INITRWND, Form::Number),
    ("quickack", RTAX_QUICKACK, Form::Number),
    ("congctl", RTAX_CC_ALGO, Form::Name),
];

/// The kernel's longest retransmission timeout (`TCP_RTO_MAX`): a longer floor would stand above it.
const LONGEST_MS: u32 = 120_000;

/// Segments: more in a first flight than a window without scaling has bytes.
const MOST_SEGMENTS: u32 = 65_535;

/// The longest name of a congestion control (`TCP_CA_NAME_MAX`, its end included).
const NAME: usize = 16;

/// A route's metrics with these options.
pub fn with(mut metrics: Vec<Attribute>, options: &[(String, String)]) -> Result<Vec<Attribute>, Error> {
    for (name, value) in options {
        let Some((_, kind, form)) = OPTIONS.iter().find(|(known, ..)| known == name) else {
            let names: Vec<&str> = OPTIONS.iter().map(|(known, ..)| *known).collect();
            return Err(Error::Usage(format!(
                "a route has no option `{name}`; it must be one of {}",
                names.join(", ")
            )));
        };
        let wrong = |expected: &str| Error::Usage(format!("`{name} {value}`: it must be {expected}"));
        let bytes = match form {
            Form::Number => match value.parse::<u32>() {
                // The kernel takes 0 for an option that is not given.
                Ok(0) if *kind != RTAX_QUICKACK => return Err(wrong("a whole number above 0")),
                Ok(number) if number > MOST_SEGMENTS && [RTAX_INITCWND, RTAX_INITRWND].contains(kind) => {
                    return Err(wrong("at most 65535 segments"));
                }
                Ok(number) => number.to_ne_bytes().to_vec(),
                Err(_) => return Err(wrong("a whole number")),
            },
            Form::Time => milliseconds(value)
                .ok_or_else(|| wrong("whole milliseconds up to 120s, such as 5ms"))?
                .to_ne_bytes()
                .to_vec(),
            Form::Feature if value == "ecn" => ECN.to_ne_bytes().to_vec(),
            Form::Feature => return Err(wrong("ecn")),
            Form::Name if value.is_empty() || value.len() >= NAME || !value.bytes().all(|b| b.is_ascii_graphic()) => {
                return Err(wrong("a name of at most 15 letters"));
            }
            Form::Name => [value.as_bytes(), &[0]].concat(),
        };
        set(&mut metrics, *kind, bytes);
        if *form == Form::Time {
            let locked = metrics.iter().find(|(kind, _)| *kind == RTAX_LOCK).map_or(0, |(_, value)| number(value));
            set(&mut metrics, RTAX_LOCK, (locked | 1 << kind).to_ne_bytes().to_vec());
        }
    }
    // The kernel writes them in this order.
    metrics.sort_by_key(|(kind, _)| *kind);
    Ok(metrics)
}

fn set(metrics: &mut Vec<Attribute>, kind: u16, value: Vec<u8>) {
    metrics.retain(|(other, _)| *other != kind);
    metrics.push((kind, value));
}

fn number(value: &[u8]) -> u32 {
    value.try_into().map_or(0, u32::from_ne_bytes)
}

fn milliseconds(value: &str) -> Option<u32> {
    value
        .strip_suffix("ms")
        .and_then(|v| v.parse().ok())
        .or_else(|| value.strip_suffix('s').and_then(|v| v.parse::<u32>().ok()).and_then(|v| v.checked_mul(1000)))
        // The kernel would take zero, and time out at once.
        .filter(|v| (1..=LONGEST_MS).contains(v))
}

/// The congestion control that a route names.
pub fn congestion_control(route: &Route) -> Option<String> {
    let metrics = route.metrics();
    let (_, name) = metrics.iter().find(|(kind, _)| *kind == RTAX_CC_ALGO)?;
    Some(String::from_utf8_lossy(name).trim_end_matches('\0').to_owned())
}

/// The options of a route, as `ip route` would write them.
pub fn shown(route: &Route) -> String {
    let metrics = route.metrics();
    let words = OPTIONS.iter().filter_map(|(name, kind, form)| {
        let (_, value) = metrics.iter().find(|(other, _)| other == kind)?;
        Some(match form {
            Form::Number => format!("{name} {}", number(value)),
            Form::Time => format!("{name} {}ms", number(value)),
            Form::Feature if number(value) & ECN != 0 => format!("{name} ecn"),
            Form::Feature => return None,
            Form::Name => format!("{name} {}", String::from_utf8_lossy(value).trim_end_matches('\0')),
        })
    });
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(words: &[(&str, &str)]) -> Vec<(String, String)> {
        words.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_floor_is_locked_because_the_kernel_heeds_no_other() {
        let metrics = with(Vec::new(), &options(&[("rto_min", "5ms")])).unwrap();
        assert_eq!(metrics[0], (RTAX_LOCK, (1u32 << RTAX_RTO_MIN).to_ne_bytes().to_vec()));
        assert_eq!(metrics[1], (RTAX_RTO_MIN, 5u32.to_ne_bytes().to_vec()));
    }

    #[test]
    fn an_option_leaves_the_others_as_they_were() {
        let before = with(Vec::new(), &options(&[("initcwnd", "4"), ("congctl", "cubic")])).unwrap();
        let after = with(before, &options(&[("congctl", "bbr"), ("quickack", "1")])).unwrap();
        assert_eq!(
            after.iter().map(|(kind, _)| *kind).collect::<Vec<_>>(),
            [RTAX_INITCWND, RTAX_QUICKACK, RTAX_CC_ALGO]
        );
        assert_eq!(after[2].1, b"bbr\0");
    }

    #[test]
    fn wrong_options_are_sentences() {
        for (name, value, said) in [
            ("rto_mim", "5ms", "a route has no option `rto_mim`"),
            ("rto_min", "5", "`rto_min 5`: it must be whole milliseconds"),
            ("rto_min", "0ms", "`rto_min 0ms`: it must be whole milliseconds"),
            ("rto_min", "120001ms", "it must be whole milliseconds up to 120s"),
            ("initcwnd", "65536", "`initcwnd 65536`: it must be at most 65535 segments"),
            ("congctl", "cu\0bic", "it must be a name of at most 15 letters"),
            ("initcwnd", "-1", "`initcwnd -1`: it must be a whole number"),
            ("initcwnd", "0", "`initcwnd 0`: it must be a whole number above 0"),
            ("congctl", "a-name-that-is-too-long", "it must be a name of at most 15 letters"),
        ] {
            let error = with(Vec::new(), &options(&[(name, value)])).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
