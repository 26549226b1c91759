//! The only list of algorithms: a new one is a file here and a line below.

use crate::Algorithm;

macro_rules! algorithms {
    ($($module:ident),* $(,)?) => {
        $(pub mod $module;)*
        /// Every algorithm, in the order `fanin list cc` shows them. A module may register several names.
        pub static ALGORITHMS: [Algorithm; COUNT] = all();
        const MODULES: &[&[Algorithm]] = &[$($module::ALGORITHMS),*];
    };
}

const COUNT: usize = {
    let (mut count, mut module) = (0, 0);
    while module < MODULES.len() {
        count += MODULES[module].len();
        module += 1;
    }
    count
};

/// The modules' lists as one.
const fn all() -> [Algorithm; COUNT] {
    let mut all = [MODULES[0][0]; COUNT];
    let (mut at, mut module) = (0, 0);
    while module < MODULES.len() {
        let mut one = 0;
        while one < MODULES[module].len() {
            all[at] = MODULES[module][one];
            (at, one) = (at + 1, one + 1);
        }
        module += 1;
    }
    all
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
    ndp,
}

#[cfg(test)]
pub(crate) mod testing;

/// The tutorial's algorithm, as a reader would put it here.
#[cfg(test)]
#[path = "../../../../docs/tutorial/half.rs"]
mod half;

#[cfg(test)]
mod tests {
    #[test]
    fn the_tutorials_algorithm_compiles_and_is_not_taken() {
        let [half] = super::half::ALGORITHMS else { panic!("one algorithm") };
        assert!(super::ALGORITHMS.iter().all(|other| other.name != half.name));
    }
}
