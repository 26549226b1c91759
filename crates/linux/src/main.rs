//! `fanin-linux`: what `fanin linux` needs root for. One command, one JSON object on standard output, or one sentence on standard error.

mod error;
mod host;
#[cfg(feature = "bpf")]
mod loader;
#[cfg(feature = "bpf")]
mod params;

use error::Error;
use serde_json::Value;
#[cfg(feature = "bpf")]
use serde_json::json;
use std::process::ExitCode;

const USAGE: &str = "usage: fanin-linux check | status | params NAME | load NAME [--param key=value]... [--hold] | unload NAME | unload --all";

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
        ["unload", "--all"] => unload(None),
        ["unload", name] => unload(Some(name)),
        _ => Err(Error::Usage(USAGE.to_owned())),
    }
}

/// The twin that a user means by `trim`, `gss+dctcp` or `fanin_trim`.
fn twin(name: &str) -> Result<&'static fanin_kernelcc::twins::Twin, Error> {
    use fanin_kernelcc::twins;
    twins::find(name).or_else(|| twins::TWINS.iter().find(|t| t.linux == name)).ok_or_else(|| Error::NoTwin {
        name: name.to_owned(),
        twins: twins::TWINS.iter().map(|t| t.algorithm).collect::<Vec<_>>().join(", "),
    })
}

#[cfg(feature = "bpf")]
fn status() -> Result<Value, Error> {
    host::need_root()?;
    loader::status()
}

#[cfg(feature = "bpf")]
fn params(name: &str) -> Result<Value, Error> {
    let twin = twin(name)?;
    let found = params::of(loader::object_of(twin.file)?)?;
    Ok(
        json!({ "twin": twin.linux, "params": found.iter().map(|p| json!({ "name": p.name, "default": p.value })).collect::<Vec<_>>() }),
    )
}

#[cfg(feature = "bpf")]
fn load(name: &str, rest: &[&str]) -> Result<Value, Error> {
    let twin = twin(name)?;
    let (mut settings, mut hold) = (Vec::new(), false);
    let mut words = rest.iter();
    while let Some(word) = words.next() {
        match *word {
            "--hold" => hold = true,
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
    host::need_root()?;
    host::need_struct_ops()?;
    loader::load(twin, &settings, hold)
}

#[cfg(feature = "bpf")]
fn unload(name: Option<&str>) -> Result<Value, Error> {
    let twin = name.map(twin).transpose()?;
    host::need_root()?;
    let gone = loader::unload(twin.map(|t| t.linux))?;
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
fn unload(_name: Option<&str>) -> Result<Value, Error> {
    Err(Error::NotBuilt)
}
