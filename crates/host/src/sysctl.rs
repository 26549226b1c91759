//! Sysctls of a network namespace.

use crate::error::Error;
use std::fs;
use std::path::PathBuf;

fn path(name: &str) -> Result<PathBuf, Error> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    if !(name.starts_with("net.") && name.chars().all(is_word) && !name.contains("..")) {
        return Err(Error::Usage(format!("`{name}`: it must be a sysctl of the network, such as net.ipv4.tcp_ecn")));
    }
    Ok(PathBuf::from("/proc/sys").join(name.replace('.', "/")))
}

/// Its value, as the kernel writes it.
pub fn read(name: &str) -> Result<String, Error> {
    let path = path(name)?;
    fs::read_to_string(&path).map(|text| text.trim_end_matches('\n').to_owned()).map_err(Error::file(&path))
}

/// Sets it.
pub fn write(name: &str, value: &str) -> Result<(), Error> {
    let path = path(name)?;
    fs::write(&path, format!("{value}\n")).map_err(|why| Error::Kernel { what: format!("{name} = {value}"), why })
}
