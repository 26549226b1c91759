//! Sysctls of a network namespace.

use crate::error::Error;
use std::fs;
use std::io::ErrorKind;
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
    let missing = || Error::Usage(format!("this host has no sysctl `{name}`: its device or module is not there"));
    current(name)?.ok_or_else(missing)
}

/// The same; `None` where there is no such sysctl, or none any more: it goes with its network device.
pub fn current(name: &str) -> Result<Option<String>, Error> {
    let path = path(name)?;
    match fs::read_to_string(&path) {
        Ok(text) => Ok(Some(text.trim_end_matches('\n').to_owned())),
        Err(why) if why.kind() == ErrorKind::NotFound => Ok(None),
        Err(why) => Err(Error::file(&path)(why)),
    }
}

/// Sets it.
pub fn write(name: &str, value: &str) -> Result<(), Error> {
    let path = path(name)?;
    // The kernel reads the first line alone.
    if value.contains(|c: char| c.is_control() && c != '\t') {
        return Err(Error::Usage(format!("{name} = {value}: it must be one line of text")));
    }
    fs::write(&path, format!("{value}\n")).map_err(|why| Error::Kernel { what: format!("{name} = {value}"), why })
}
