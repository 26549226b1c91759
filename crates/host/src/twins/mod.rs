//! fanin's own congestion controls of `kernel/cc`, and the receivers' of `kernel/receiver`, into the running kernel by BPF and out again.
//!
//! | file | what it does |
//! |---|---|
//! | `kernel.rs` | what this kernel has |
//! | `loader.rs` | twins: struct_ops, pinned or held by a process |
//! | `receiver.rs` | receivers' algorithms: two tc programs on a device |
//! | `mounted.rs` | the file system of pins: mounted where it is missing |
//! | `params.rs` | parameters, written before a load |

pub mod error;
pub mod kernel;
#[cfg(feature = "bpf")]
mod loader;
#[cfg(feature = "bpf")]
mod mounted;
#[cfg(feature = "bpf")]
mod params;
#[cfg(feature = "bpf")]
mod receiver;

#[cfg(feature = "bpf")]
pub use with_bpf::*;
#[cfg(not(feature = "bpf"))]
pub use without_bpf::*;

use error::Error;
use fanin_kernelcc::twins::{self, TWINS, Twin};

/// The algorithms of `kernel/receiver`: their names in the registry, each with its source file.
const RECEIVERS: [(&str, &str); 2] = [("iatcp", "iatcp.c"), ("ictcp", "ictcp.c")];

/// The twin that a user means by `trim`, `gss+dctcp` or `fanin_trim`.
fn twin(name: &str) -> Result<&'static Twin, Error> {
    let algorithms = TWINS.iter().map(|t| t.algorithm).chain(RECEIVERS.iter().map(|(name, _)| *name));
    twins::find(name)
        .or_else(|| TWINS.iter().find(|t| t.linux == name))
        .ok_or_else(|| Error::NoTwin { name: name.to_owned(), twins: algorithms.collect::<Vec<_>>().join(", ") })
}

/// `key=value` of a parameter.
pub fn setting(word: &str) -> Result<(String, u32), Error> {
    let (key, value) = word.split_once('=').ok_or_else(|| Error::Usage("--param takes key=value".to_owned()))?;
    let wrong =
        |_| Error::BadParam(format!("parameter `{key}` = {value}: it must be a whole number from 0 to {}", u32::MAX));
    Ok((key.to_owned(), value.parse().map_err(wrong)?))
}

#[cfg(feature = "bpf")]
mod with_bpf {
    use super::error::Error;
    use super::{RECEIVERS, kernel, loader, params, receiver, twin};
    use fanin_kernelcc::twins::TWINS;
    use serde_json::{Value, json};

    pub use super::loader::Held;

    /// Its source, where it is a receiver's algorithm.
    fn receiver_of(name: &str) -> Option<(&'static str, &'static str)> {
        RECEIVERS.into_iter().find(|(known, _)| *known == name)
    }

    /// Twins and receivers' algorithms that are loaded, with their counters.
    pub fn status() -> (Value, Value) {
        match kernel::is_root() {
            true => (json!(loader::status()), json!(receiver::status())),
            false => (json!([]), json!([])),
        }
    }

    /// Name and device of everything that is loaded.
    pub fn loaded() -> Vec<(String, Option<String>)> {
        let twins = TWINS.iter().filter(|t| loader::is_loaded(t.linux)).map(|t| (t.algorithm.to_owned(), None));
        let receivers = receiver::loaded().into_iter().map(|(name, device)| (name.to_owned(), Some(device)));
        twins.chain(receivers).collect()
    }

    /// The parameters of a twin or a receiver's algorithm.
    pub fn parameters(name: &str) -> Result<Value, Error> {
        let (name, file) = match receiver_of(name) {
            Some(found) => found,
            None => twin(name).map(|twin| (twin.linux, twin.file))?,
        };
        let found = params::of(loader::object_of(file)?)?;
        let told: Vec<Value> = found.iter().map(|p| json!({ "name": p.name, "default": p.value })).collect();
        Ok(json!({ "twin": name, "params": told }))
    }

    /// The name by which a load is known: `fanin-host status` and `undo` use the same.
    pub fn known_as(name: &str) -> Result<&'static str, Error> {
        receiver_of(name).map_or_else(|| twin(name).map(|twin| twin.algorithm), |(name, _)| Ok(name))
    }

    /// Loads one, to stay until `unload`.
    pub fn load(name: &str, device: Option<&str>, settings: &[(String, u32)]) -> Result<Value, Error> {
        placed(name, device, settings, false)
    }

    /// Loads one for as long as standard input is open.
    pub fn load_and_wait(name: &str, device: Option<&str>, settings: &[(String, u32)]) -> Result<Value, Error> {
        placed(name, device, settings, true)
    }

    fn placed(name: &str, device: Option<&str>, settings: &[(String, u32)], hold: bool) -> Result<Value, Error> {
        match (receiver_of(name), device) {
            (Some((name, _)), None) => Err(Error::NeedsDevice(name.to_owned())),
            (Some((name, file)), Some(device)) => {
                kernel::need_root()?;
                receiver::load(name, file, device, settings, hold)
            }
            (None, Some(_)) => Err(Error::NoDeviceWanted(twin(name)?.algorithm.to_owned())),
            (None, None) => {
                let twin = twin(name)?;
                kernel::need_root()?;
                kernel::need_struct_ops()?;
                loader::load(twin, settings, hold)
            }
        }
    }

    /// A twin for as long as the answer lives.
    pub fn hold(name: &str, settings: &[(String, u32)]) -> Result<Held, Error> {
        if let Some((name, _)) = receiver_of(name) {
            return Err(Error::NeedsDevice(name.to_owned()));
        }
        let twin = twin(name)?;
        kernel::need_root()?;
        kernel::need_struct_ops()?;
        loader::hold(twin, settings)
    }

    /// Takes back one, or all; what Linux called them.
    pub fn unload(name: Option<&str>, device: Option<&str>) -> Result<Vec<String>, Error> {
        let receiver = name.and_then(receiver_of);
        let twin = name.filter(|_| receiver.is_none()).map(twin).transpose()?;
        kernel::need_root()?;
        let mut gone = Vec::new();
        if receiver.is_none() {
            if device.is_some() {
                return Err(Error::NoDeviceWanted(name.unwrap_or_default().to_owned()));
            }
            gone.extend(loader::unload(twin.map(|t| t.linux))?);
        }
        if receiver.is_some() || name.is_none() {
            gone.extend(receiver::unload(receiver.map(|(name, _)| name), device)?);
        }
        Ok(gone)
    }

    /// Takes back what is still loaded of one, or the remainder of a load that was killed.
    pub fn put_back(name: &str, device: Option<&str>) -> Result<(), Error> {
        if loaded().contains(&(name.to_owned(), device.map(str::to_owned))) {
            return unload(Some(name), device).map(drop);
        }
        loader::tidy();
        Ok(())
    }
}

#[cfg(not(feature = "bpf"))]
mod without_bpf {
    use super::error::Error;
    use super::{RECEIVERS, twin};
    use serde_json::{Value, json};

    /// None can be loaded.
    #[derive(Debug)]
    pub enum Held {}

    impl Held {
        /// What Linux calls it.
        pub fn name(&self) -> &str {
            match *self {}
        }
    }

    /// Nothing.
    pub fn status() -> (Value, Value) {
        (json!([]), json!([]))
    }

    /// Nothing.
    pub fn loaded() -> Vec<(String, Option<String>)> {
        Vec::new()
    }

    /// Refused.
    pub fn parameters(name: &str) -> Result<Value, Error> {
        known_as(name).and(Err(Error::NotBuilt))
    }

    /// The name of an algorithm that there is.
    pub fn known_as(name: &str) -> Result<&'static str, Error> {
        let receiver = RECEIVERS.into_iter().find(|(known, _)| *known == name);
        receiver.map_or_else(|| twin(name).map(|twin| twin.algorithm), |(name, _)| Ok(name))
    }

    /// Refused.
    pub fn load(name: &str, _: Option<&str>, _: &[(String, u32)]) -> Result<Value, Error> {
        known_as(name).and(Err(Error::NotBuilt))
    }

    /// Refused.
    pub fn load_and_wait(name: &str, device: Option<&str>, settings: &[(String, u32)]) -> Result<Value, Error> {
        load(name, device, settings)
    }

    /// Refused.
    pub fn hold(name: &str, _: &[(String, u32)]) -> Result<Held, Error> {
        known_as(name).and(Err(Error::NotBuilt))
    }

    /// Refused.
    pub fn unload(_: Option<&str>, _: Option<&str>) -> Result<Vec<String>, Error> {
        Err(Error::NotBuilt)
    }

    /// Refused.
    pub fn put_back(_: &str, _: Option<&str>) -> Result<(), Error> {
        Err(Error::NotBuilt)
    }
}
