//! Changes of this host: each is kept before it is made, and taken back to exactly what was there.

use crate::error::Error;
use crate::options;
use crate::plan::End;
use crate::routes::{Route, Routes};
use crate::state::{self, Before, State, Trial, hex, unhex};
use crate::sysctl;
use crate::twins::{self, kernel};
use serde_json::{Value, json};
use std::net::IpAddr;
use std::path::Path;

/// The state, after what a killed trial left is taken back.
pub fn open(folder: &Path) -> Result<State, Error> {
    let mut state = State::open(folder)?;
    if state.trial().is_some_and(Trial::is_abandoned) {
        take_back_trial(&mut state)?;
    }
    Ok(state)
}

/// Gives new connections with a host options of their route; all else of the route that they used is kept.
pub fn route(state: &mut State, host: IpAddr, wanted: &[(String, String)]) -> Result<(), Error> {
    if let Some(trial) =
        state.trial().filter(|trial| matches!(trial.before, Before::Routes { host: h, .. } if h == host))
    {
        return Err(Error::Usage(format!("process {} tries a change of {host}; end it first", trial.process)));
    }
    let before = routes_to(host)?;
    change(state, &before, || give(host, wanted))
}

/// The routes to one host alone, to be put back.
fn routes_to(host: IpAddr) -> Result<Before, Error> {
    let routes = Routes::open()?.exactly(host)?.iter().map(|route| hex(route.bytes())).collect();
    Ok(Before::Routes { host, routes })
}

fn give(host: IpAddr, wanted: &[(String, String)]) -> Result<(), Error> {
    let mut routes = Routes::open()?;
    let used = routes.used(host)?;
    let changed = used.to_host(host, &options::with(used.metrics(), wanted)?);
    let name = wanted.iter().find(|(option, _)| option == "congctl").map(|(_, name)| name);
    routes.replace(&changed).map_err(|error| match name.filter(|name| !kernel::available().contains(name)) {
        // The kernel looks for a module of the name first.
        Some(name) => Error::Usage(format!(
            "the kernel has no congestion control `{name}`, nor a module of it; it has {}; a twin is loaded first (`fanin-host load`)",
            kernel::available().join(", ")
        )),
        None => error,
    })
}

/// The state, where no other process runs a trial.
pub fn without_trial(folder: &Path) -> Result<State, Error> {
    let state = open(folder)?;
    match state.trial() {
        Some(other) => Err(Error::Usage(format!("process {} runs a trial here already; end it first", other.process))),
        None => Ok(state),
    }
}

/// Notes a trial of this process, then gives its destination the options.
pub fn begin_trial(folder: &Path, host: IpAddr, wanted: &[(String, String)]) -> Result<(), Error> {
    let mut state = without_trial(folder)?;
    let process = std::process::id();
    state.set_trial(Some(Trial { process, began: state::began(process), before: routes_to(host)? }))?;
    let given = give(host, wanted);
    if given.is_err() {
        take_back_trial(&mut state)?;
    }
    given
}

/// Takes back what this process tries.
pub fn end_trial(folder: &Path) -> Result<(), Error> {
    abandon_trial(folder, std::process::id()).map(drop)
}

/// Takes back what a process tried; its destination, where that is still to be done.
pub fn abandon_trial(folder: &Path, process: u32) -> Result<Option<IpAddr>, Error> {
    let mut state = State::open(folder)?;
    match state.trial() {
        Some(trial) if trial.process == process => take_back_trial(&mut state),
        _ => Ok(None),
    }
}

fn take_back_trial(state: &mut State) -> Result<Option<IpAddr>, Error> {
    let Some(before) = state.trial().map(|trial| trial.before.clone()) else { return Ok(None) };
    put_back(state, &before)?;
    state.set_trial(None)?;
    Ok(match before {
        Before::Routes { host, .. } => Some(host),
        _ => None,
    })
}

/// Loads a twin, or a receiver's algorithm onto a device.
pub fn load(state: &mut State, name: &str, device: Option<&str>, params: &[(String, u32)]) -> Result<Value, Error> {
    let name = twins::known_as(name)?;
    // Of a load that was killed, or whose twin another program took out of the kernel.
    for gone in noted_load(state, name, device).into_iter().filter(|_| !is_loaded(name, device)) {
        put_back(state, &gone)?;
        state.forget(&gone)?;
    }
    let before = Before::Loaded { name: name.to_owned(), device: device.map(str::to_owned), params: params.to_vec() };
    let mut answer = Value::Null;
    change(state, &before, || {
        answer = twins::load(name, device, params)?;
        Ok(())
    })?;
    Ok(answer)
}

/// What is noted of a load.
fn noted_load(state: &State, name: &str, device: Option<&str>) -> Option<Before> {
    let is_it = |before: &&Before| matches!(before, Before::Loaded { name: n, device: d, .. } if n == name && d.as_deref() == device);
    state.before().iter().find(is_it).cloned()
}

fn is_loaded(name: &str, device: Option<&str>) -> bool {
    twins::loaded().contains(&(name.to_owned(), device.map(str::to_owned)))
}

/// Makes the changes of a plan; one that fails takes back those of this plan that were made before it.
pub fn apply(state: &mut State, part: &End) -> Result<(), Error> {
    let options: Vec<(String, String)> = part.route.clone().into_iter().collect();
    // All options are looked at before the first change.
    options::with(Vec::new(), &options)?;
    let earlier = state.before().to_vec();
    let made = make(state, part, &options);
    if made.is_err() {
        for before in state.before().to_vec().iter().rev().filter(|before| !earlier.contains(before)) {
            put_back(state, before)?;
            state.forget(before)?;
        }
    }
    made
}

fn make(state: &mut State, part: &End, options: &[(String, String)]) -> Result<(), Error> {
    if part.twin.is_none() && !part.params.is_empty() {
        return Err(Error::Usage("the plan has `params` and no `twin` whose they are".to_owned()));
    }
    if let Some(name) = &part.twin {
        load_of_plan(state, twins::known_as(name)?, &part.params.clone().into_iter().collect::<Vec<_>>())?;
    }
    for (name, value) in &part.sysctl {
        set(state, name, value)?;
    }
    part.peers.iter().filter(|_| !options.is_empty()).try_for_each(|peer| route(state, *peer, options))
}

/// Loads a plan's twin where it is not loaded with these parameters already.
fn load_of_plan(state: &mut State, name: &str, wanted: &[(String, u32)]) -> Result<(), Error> {
    match noted_load(state, name, None).filter(|_| is_loaded(name, None)) {
        Some(Before::Loaded { params, .. }) if params == wanted => Ok(()),
        Some(_) => Err(Error::Usage(format!("{name} is loaded with other parameters; `fanin-host undo` first"))),
        None => load(state, name, None, wanted).map(drop),
    }
}

/// Takes back what is loaded, under a name or all of it, and the routes that name it.
pub fn unload(state: &mut State, name: Option<&str>, device: Option<&str>) -> Result<Value, Error> {
    let gone = twins::unload(name, device)?;
    let still = twins::loaded();
    let kept: Vec<Before> = state.before().to_vec();
    let mut destinations = Vec::new();
    for before in &kept {
        match before {
            Before::Loaded { name, device, .. } if !still.contains(&(name.clone(), device.clone())) => {
                state.forget(before)?
            }
            Before::Routes { host, .. } if names_one_of(*host, &gone)? => {
                put_back(state, before)?;
                state.forget(before)?;
                destinations.push(*host);
            }
            _ => {}
        }
    }
    Ok(json!({ "unloaded": gone, "routes": destinations }))
}

fn names_one_of(host: IpAddr, gone: &[String]) -> Result<bool, Error> {
    let now = Routes::open()?.exactly(host)?;
    Ok(now.iter().filter_map(options::congestion_control).any(|name| gone.contains(&name)))
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

/// Takes back what was changed of the routes to one host.
pub fn undo_route(state: &mut State, host: IpAddr) -> Result<usize, Error> {
    let is_it = |before: &&Before| matches!(before, Before::Routes { host: changed, .. } if *changed == host);
    let Some(before) = state.before().iter().find(is_it).cloned() else {
        return Err(Error::Usage(format!("no route to {host} is changed; `fanin-host status` shows what is")));
    };
    put_back(state, &before)?;
    state.forget(&before)?;
    Ok(1)
}

/// Takes everything back, the last change first; what cannot be taken back stays in the state, and the first such error is told.
/// The answer names what went with its device.
pub fn undo(state: &mut State) -> Result<Value, Error> {
    let changes: Vec<Before> = state.before().iter().rev().cloned().collect();
    let mut failed = None;
    let mut count = 0;
    let mut gone = Vec::new();
    if take_back_trial(state)?.is_some() {
        count += 1;
    }
    for before in changes {
        match put_back(state, &before) {
            Ok(is_back) => {
                state.forget(&before)?;
                count += 1;
                gone.extend((!is_back).then(|| named(&before)));
            }
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    match (failed, gone.is_empty()) {
        (Some(error), _) => Err(error),
        (None, true) => Ok(json!({ "undone": count })),
        (None, false) => Ok(json!({ "undone": count, "gone": gone })),
    }
}

/// What was changed, in a word.
fn named(before: &Before) -> String {
    match before {
        Before::Sysctl { name, .. } | Before::Loaded { name, .. } => name.clone(),
        Before::Routes { host, .. } => host.to_string(),
    }
}

/// Sets back what was there; false where the kernel has removed it together with its network device.
fn put_back(state: &State, before: &Before) -> Result<bool, Error> {
    match before {
        Before::Sysctl { name, value } => match sysctl::current(name)? {
            None => Ok(false),
            Some(now) if now == *value => Ok(true),
            Some(_) => sysctl::write(name, value).map(|()| true),
        },
        Before::Loaded { name, device, .. } => {
            twins::put_back(name, device.as_deref()).map(|()| true).map_err(Error::from)
        }
        Before::Routes { host, routes: kept } => {
            let broken = || state.spoilt(format!("its routes to {host} are none"));
            let kept: Option<Vec<Route>> = kept.iter().map(|text| unhex(text).and_then(Route::saved)).collect();
            let kept = kept.ok_or_else(broken)?;
            let mut routes = Routes::open()?;
            // A route that is replaced leaves no moment without one.
            let now = routes.exactly(*host)?;
            let mut is_back = true;
            for route in kept.iter().filter(|route| !now.contains(route)) {
                is_back &= routes.restore(route)?;
            }
            for route in routes.exactly(*host)?.iter().filter(|route| !kept.contains(route)) {
                routes.remove(route)?;
            }
            Ok(is_back)
        }
    }
}

/// What is changed, with what was there and what is there now.
pub fn status(state: &State) -> Result<Value, Error> {
    let mut changes = Vec::new();
    for before in state.before() {
        changes.push(match before {
            Before::Sysctl { name, value } => json!({ "sysctl": name, "before": value, "now": sysctl::current(name)? }),
            Before::Loaded { name, device, params } => {
                let params: serde_json::Map<_, _> =
                    params.iter().map(|(key, value)| (key.clone(), json!(value))).collect();
                json!({ "loaded": name, "device": device, "params": params })
            }
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
    let trial = state.trial().map(|trial| match &trial.before {
        Before::Routes { host, .. } => json!({ "destination": host, "process": trial.process }),
        _ => json!({ "process": trial.process }),
    });
    Ok(json!({ "changes": changes, "trial": trial }))
}
