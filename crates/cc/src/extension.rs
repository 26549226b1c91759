//! Algorithms from outside this crate, found at run time: how a class in Python becomes one.
//!
//! The registry is a list; whoever embeds fanin may add one resolver, which is asked for the names that are not on it.

#[cfg(not(feature = "std"))]
use crate::bare::*;
use crate::registry::{Algorithm, BuildError};
use crate::{Args, CongestionControl, Setup};
#[cfg(feature = "std")]
use std::sync::OnceLock;

/// Makes senders of one kind.
pub trait Extension: Sync {
    /// A new connection's sender; the error is one sentence.
    ///
    /// # Errors
    /// What its language says.
    fn build(&self, setup: &Setup, args: &Args) -> Result<Box<dyn CongestionControl>, String>;

    /// Changes whenever its behaviour may have changed, such as a hash of its source.
    fn version(&self) -> String;

    /// The name under which a Linux that it is built into registers it; `None` for what no Linux can have.
    fn linux_name(&self) -> Option<&str> {
        None
    }
}

impl core::fmt::Debug for dyn Extension {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Extension")
    }
}

/// Answers for a name: `None` if it is none of its own, and one sentence if it is but cannot be had.
pub type Resolver = fn(&str) -> Result<Option<&'static Algorithm>, String>;

#[cfg(feature = "std")]
static RESOLVER: OnceLock<Resolver> = OnceLock::new();

/// Sets who is asked for names that are not registered. The first one stays.
///
/// ```
/// assert!(fanin_cc::extension::set_resolver(|_| Ok(None)));
/// assert!(!fanin_cc::extension::set_resolver(|_| Ok(None)));
/// ```
#[cfg(feature = "std")]
pub fn set_resolver(resolver: Resolver) -> bool {
    RESOLVER.set(resolver).is_ok()
}

/// The algorithm of this name from outside, if there is one.
#[cfg(feature = "std")]
pub(crate) fn find(name: &str) -> Result<Option<&'static Algorithm>, BuildError> {
    match RESOLVER.get() {
        None => Ok(None),
        Some(resolver) => resolver(name).map_err(|why| BuildError::Extension { name: name.to_owned(), why }),
    }
}

/// A kernel has no extensions.
#[cfg(not(feature = "std"))]
pub(crate) fn find(_name: &str) -> Result<Option<&'static Algorithm>, BuildError> {
    Ok(None)
}
