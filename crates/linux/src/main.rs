//! `fanin-linux`: what `fanin linux` needs root for. One command, one JSON object on standard output, or one sentence on standard error.

mod error;
mod host;
#[cfg(feature = "bpf")]
mod loader;
#[cfg(feature = "bpf")]
mod params;
#[cfg(feature = "bpf")]
mod receiver;

use error::Error;
use serde_json::Value;
#[cfg(feature = "bpf")]
use serde_json::json;
use std::process::ExitCode;

const USAGE: &str = "usage: fanin-linux check | status | params NAME | load NAME [--device DEVICE] [--param key=value]... [--hold] | unload NAME [--device DEVICE] | unload --all";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match run(&args) {
        Ok(answer) => {
            println!("{answer}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &[String]) -> Result<Value, Error> {
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["check"] => Ok(host::check()),
        ["status"] => status(),
        ["params", name] => params(name),
        ["load", name, rest @ ..] => load(name, rest),
        ["unload", "--all"] => unload(None, None),
        ["unload", name] => unload(Some(name), None),
        ["unload", name, "--device", device] => unload(Some(name), Some(device)),
        _ => Err(Error::Usage(USAGE.to_owned())),
    }
}

/// The twin that a user means by `trim`, `gss+dctcp` or `fanin_trim`.
fn twin(name: &str) -> Result<&'static fanin_kernelcc::twins::Twin, Error> {
    use fanin_kernelcc::twins;
    let algorithms = twins::TWINS.iter().map(|t| t.algorithm).chain(RECEIVERS.iter().map(|(name, _)| *name));
    twins::find(name)
        .or_else(|| twins::TWINS.iter().find(|t| t.linux == name))
        .ok_or_else(|| Error::NoTwin { name: name.to_owned(), twins: algorithms.collect::<Vec<_>>().join(", ") })
}

/// The algorithms of `kernel/receiver`: their names in the registry, each with its source file.
const RECEIVERS: [(&str, &str); 2] = [("iatcp", "iatcp.c"), ("ictcp", "ictcp.c")];

/// The receivers' algorithm of this name, with its source file.
#[cfg(feature = "bpf")]
fn receiver_of(name: &str) -> Option<(&'static str, &'static str)> {
    RECEIVERS.into_iter().find(|(known, _)| *known == name)
}

#[cfg(feature = "bpf")]
fn status() -> Result<Value, Error> {
    host::need_root()?;
    loader::status()
}

#[cfg(feature = "bpf")]
fn params(name: &str) -> Result<Value, Error> {
    let (name, file) = match receiver_of(name) {
        Some(found) => found,
        None => twin(name).map(|twin| (twin.linux, twin.file))?,
    };
    let found = params::of(loader::object_of(file)?)?;
    Ok(
        json!({ "twin": name, "params": found.iter().map(|p| json!({ "name": p.name, "default": p.value })).collect::<Vec<_>>() }),
    )
}

#[cfg(feature = "bpf")]
fn load(name: &str, rest: &[&str]) -> Result<Value, Error> {
    let receiver = receiver_of(name);
    let (mut settings, mut hold, mut device) = (Vec::new(), false, None);
    let mut words = rest.iter();
    while let Some(word) = words.next() {
        match *word {
            "--hold" => hold = true,
            "--device" => device = Some(words.next().ok_or_else(|| Error::NeedsDevice(name.to_owned()))?),
            "--param" => {
                let setting = words.next().and_then(|s| s.split_once('='));
                let (key, value) = setting.ok_or_else(|| Error::Usage("--param takes key=value".to_owned()))?;
                let value: u32 = value.parse().map_err(|_| {
                    Error::BadParam(format!(
                        "parameter `{key}` = {value}: it must be a whole number from 0 to {}",
                        u32::MAX
                    ))
                })?;
                settings.push((key.to_owned(), value));
            }
            other => return Err(Error::Usage(format!("`{other}` is not an option of load; {USAGE}"))),
        }
    }
    match (receiver, device) {
        (Some((name, _)), None) => Err(Error::NeedsDevice(name.to_owned())),
        (Some((name, file)), Some(device)) => {
            host::need_root()?;
            receiver::load(name, file, device, &settings, hold)
        }
        (None, Some(_)) => Err(Error::NoDeviceWanted(twin(name)?.algorithm.to_owned())),
        (None, None) => {
            let twin = twin(name)?;
            host::need_root()?;
            host::need_struct_ops()?;
            loader::load(twin, &settings, hold)
        }
    }
}

#[cfg(feature = "bpf")]
fn unload(name: Option<&str>, device: Option<&str>) -> Result<Value, Error> {
    let receiver = name.and_then(receiver_of);
    let twin = name.filter(|_| receiver.is_none()).map(twin).transpose()?;
    host::need_root()?;
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
    Ok(json!({ "unloaded": gone }))
}

#[cfg(not(feature = "bpf"))]
fn status() -> Result<Value, Error> {
    Err(Error::NotBuilt)
}
#[cfg(not(feature = "bpf"))]
fn params(name: &str) -> Result<Value, Error> {
    twin(name).and(Err(Error::NotBuilt))
}
#[cfg(not(feature = "bpf"))]
fn load(name: &str, _rest: &[&str]) -> Result<Value, Error> {
    twin(name).and(Err(Error::NotBuilt))
}
#[cfg(not(feature = "bpf"))]
fn unload(_name: Option<&str>, _device: Option<&str>) -> Result<Value, Error> {
    Err(Error::NotBuilt)
}
