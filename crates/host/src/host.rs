//! Changes of this host: each is kept before it is made, and taken back to exactly what was there.

use crate::error::Error;
use crate::netlink::{Route, Routes};
use crate::options;
use crate::state::{Before, State, hex, unhex};
use crate::sysctl;
use serde_json::{Value, json};
use std::net::IpAddr;

/// Gives new connections with a host options of their route; all else of the route that they used is kept.
pub fn route(state: &mut State, host: IpAddr, wanted: &[(String, String)]) -> Result<(), Error> {
    let mut routes = Routes::open()?;
    let used = routes.used(host)?;
    let changed = used.to_host(host, &options::with(used.metrics(), wanted)?);
    let before = routes.exactly(host)?.iter().map(|route| hex(route.bytes())).collect();
    change(state, &Before::Routes { host, routes: before }, || routes.replace(&changed))
}

/// Sets a sysctl.
pub fn set(state: &mut State, name: &str, value: &str) -> Result<(), Error> {
    let before = sysctl::read(name)?;
    change(state, &Before::Sysctl { name: name.to_owned(), value: before }, || sysctl::write(name, value))
}

/// Keeps what was there, then changes it; a first change that the kernel refuses leaves nothing to take back.
fn change(state: &mut State, before: &Before, make: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
    let is_first = state.keep(before)?;
    let made = make();
    if made.is_err() && is_first {
        state.forget(before)?;
    }
    made
}

/// Takes everything back, the last change first; what cannot be taken back stays in the state, and the first such error is told.
pub fn undo(state: &mut State) -> Result<usize, Error> {
    let changes: Vec<Before> = state.before().iter().rev().cloned().collect();
    let mut failed = None;
    let mut count = 0;
    for before in changes {
        match put_back(&before) {
            Ok(()) => {
                state.forget(&before)?;
                count += 1;
            }
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    failed.map_or(Ok(count), Err)
}

fn put_back(before: &Before) -> Result<(), Error> {
    match before {
        Before::Sysctl { name, value } => match sysctl::read(name)? == *value {
            true => Ok(()),
            false => sysctl::write(name, value),
        },
        Before::Routes { host, routes: kept } => {
            let broken =
                || Error::State { path: "the state".to_owned(), why: format!("its routes to {host} are broken") };
            let kept: Option<Vec<Route>> = kept.iter().map(|text| unhex(text).and_then(Route::saved)).collect();
            let kept = kept.ok_or_else(broken)?;
            let mut routes = Routes::open()?;
            // A route that is replaced leaves no moment without one.
            let now = routes.exactly(*host)?;
            for route in kept.iter().filter(|route| !now.contains(route)) {
                routes.replace(route)?;
            }
            for route in routes.exactly(*host)?.iter().filter(|route| !kept.contains(route)) {
                routes.remove(route)?;
            }
            Ok(())
        }
    }
}

/// What is changed, with what was there and what is there now.
pub fn status(state: &State) -> Result<Value, Error> {
    let mut changes = Vec::new();
    for before in state.before() {
        changes.push(match before {
            Before::Sysctl { name, value } => json!({ "sysctl": name, "before": value, "now": sysctl::read(name)? }),
            Before::Routes { host, routes } => {
                let kept: Vec<String> = routes
                    .iter()
                    .filter_map(|text| unhex(text).and_then(Route::saved))
                    .map(|r| options::shown(&r))
                    .collect();
                let now: Vec<String> = Routes::open()?.exactly(*host)?.iter().map(options::shown).collect();
                json!({ "route": host, "before": kept, "now": now })
            }
        });
    }
    Ok(json!({ "changes": changes }))
}
