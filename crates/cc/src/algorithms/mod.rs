//! The only list of algorithms: a new one is a file here and a line below.

use crate::Algorithm;

macro_rules! algorithms {
    ($($module:ident),* $(,)?) => {
        $(pub mod $module;)*
        /// Every algorithm, in the order `fanin list cc` shows them. A module may register several names.
        pub static ALGORITHMS: std::sync::LazyLock<Vec<Algorithm>> =
            std::sync::LazyLock::new(|| [$($module::ALGORITHMS),*].concat());
    };
}

algorithms! {
    reno,
    dctcp,
    d2tcp,
    l2dct,
    cubic,
    bic,
    vegas,
    bbr,
    swift,
    hystart,
    trim,
    gss,
    tcprand,
    dcvegas,
    iatcp,
    ictcp,
}

#[cfg(test)]
pub(crate) mod testing;
