//! Algorithms from outside this crate, found at run time: how a class in Python becomes one.
//!
//! The registry is a list; whoever embeds fanin may add one resolver, which is asked for the names that are not on it.

#[cfg(not(feature = "std"))]
use crate::bare::*;
use crate::registry::{Algorithm, BuildError};
use crate::{Ack, Args, Cause, CongestionControl, Conn, Control, Needs, Setup, Window};
use fanin_units::Duration;
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

    /// What its senders need of host and network.
    fn needs(&self) -> Needs;

    /// It stands for code that is not loaded: plans are made with it, and nothing runs.
    fn is_stand_in(&self) -> bool {
        false
    }

    /// Its parameters are not known, because the code may not be looked into: any is taken.
    fn takes_any_parameter(&self) -> bool {
        false
    }

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

/// What is known of code that runs in another process: enough to make and name plans.
#[derive(Clone, Debug)]
pub struct StandIn {
    /// As [`Extension::version`].
    pub version: String,
    /// As [`Extension::linux_name`].
    pub linux_name: Option<String>,
    /// As [`Extension::needs`].
    pub needs: Needs,
    /// The code has been looked at, so that its parameters are known.
    pub is_known: bool,
}

impl Extension for StandIn {
    fn build(&self, setup: &Setup, _args: &Args) -> Result<Box<dyn CongestionControl>, String> {
        Ok(Box::new(StandInSender { needs: self.needs, window: setup.initial_window }))
    }
    fn version(&self) -> String {
        self.version.clone()
    }
    fn needs(&self) -> Needs {
        self.needs
    }
    fn is_stand_in(&self) -> bool {
        true
    }
    fn takes_any_parameter(&self) -> bool {
        !self.is_known
    }
    fn linux_name(&self) -> Option<&str> {
        self.linux_name.as_deref()
    }
}

/// Answers what a plan asks before it runs.
#[derive(Debug)]
struct StandInSender {
    needs: Needs,
    window: f64,
}

impl CongestionControl for StandInSender {
    fn needs(&self) -> Needs {
        self.needs
    }
    fn on_ack(&mut self, _conn: &Conn, _ack: &Ack) {}
    fn on_congestion(&mut self, _conn: &Conn, _cause: Cause) {}
    fn on_restart(&mut self, _conn: &Conn, _idle: Duration, _to: Window) {}
    fn control(&self) -> Control {
        Control { cwnd: self.window, ssthresh: f64::INFINITY, pacing: None }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn stand_in(is_known: bool) -> StandIn {
        StandIn { version: "1".to_owned(), linux_name: None, needs: Needs::default(), is_known }
    }

    #[test]
    fn a_stand_in_takes_any_parameter_until_its_code_has_been_looked_at() {
        assert_eq!([false, true].map(|is_known| stand_in(is_known).takes_any_parameter()), [true, false]);
    }
}
