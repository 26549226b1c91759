//! The twins of `kernel/cc`: which file is which algorithm's.

/// What a twin's name in the simulator ends in.
pub const SUFFIX: &str = "@linux";

/// One twin.
#[derive(Clone, Copy, Debug)]
pub struct Twin {
    /// The algorithm whose twin it is, as fanin spells it.
    pub algorithm: &'static str,
    /// Its congestion control in Linux.
    pub linux: &'static str,
    /// Name of its file in `kernel/cc`.
    pub file: &'static str,
    /// That file.
    pub source: &'static str,
}

macro_rules! twins {
    ($($algorithm:literal $linux:literal $file:literal),* $(,)?) => {
        /// Every twin.
        pub const TWINS: &[Twin] = &[$(Twin {
            algorithm: $algorithm,
            linux: $linux,
            file: $file,
            source: include_str!(concat!("../../../kernel/cc/", $file)),
        }),*];
    };
}

twins! {
    "dctcp" "fanin_dctcp" "dctcp.c",
    "d2tcp" "fanin_d2tcp" "d2tcp.c",
    "l2dct" "fanin_l2dct" "l2dct.c",
    "vegas" "fanin_vegas" "vegas.c",
    "dcvegas" "fanin_dcvegas" "dcvegas.c",
    "trim" "fanin_trim" "trim.c",
    "gss+newreno" "fanin_gss_reno" "gss_reno.c",
    "gss+cubic" "fanin_gss_cubic" "gss_cubic.c",
    "gss+dctcp" "fanin_gss_dctcp" "gss_dctcp.c",
}

/// What the twins include.
pub(crate) const HEADERS: &[(&str, &str)] = &[
    ("fanin_cc.h", include_str!("../../../kernel/cc/fanin_cc.h")),
    ("fixed.h", include_str!("../../../kernel/cc/fixed.h")),
    ("dctcp.h", include_str!("../../../kernel/cc/dctcp.h")),
    ("cubic.h", include_str!("../../../kernel/cc/cubic.h")),
    ("gss.h", include_str!("../../../kernel/cc/gss.h")),
];

/// The twin of this algorithm; `gss+reno` and `gss+sack` are `gss+newreno` in Linux.
///
/// ```
/// assert_eq!(fanin_kernelcc::twins::find("gss+reno").unwrap().linux, "fanin_gss_reno");
/// ```
pub fn find(algorithm: &str) -> Option<&'static Twin> {
    let algorithm = if matches!(algorithm, "gss+reno" | "gss+sack") { "gss+newreno" } else { algorithm };
    TWINS.iter().find(|t| t.algorithm == algorithm)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanin_cc::registry;

    #[test]
    fn the_registry_and_the_files_name_the_same_twins() {
        for twin in TWINS {
            assert_eq!(registry::deployment(twin.algorithm).unwrap().twin, Some(twin.linux));
        }
        for algorithm in fanin_cc::algorithms::ALGORITHMS.iter() {
            for place in algorithm.deploy {
                use fanin_cc::deploy::Place;
                if let Place::Twin(name) | Place::With { kernel: false, name, .. } = place {
                    assert!(TWINS.iter().any(|t| t.linux == *name), "{name}");
                }
            }
        }
    }
}
