//! A network card's settings, as ethtool(8) shows them: by ioctl(2), which every card of the last twenty years answers.
#![allow(unsafe_code)]

use crate::error::Error;
use crate::measure::Measured;
use std::ffi::CString;
use std::fs;
use std::os::fd::AsRawFd;
use std::path::Path;

/// `SIOCETHTOOL`.
const ETHTOOL: libc::c_ulong = 0x8946;
const GET_DRIVER: u32 = 0x3;
const GET_COALESCE: u32 = 0xe;
const GET_RING: u32 = 0x10;
const GET_TSO: u32 = 0x1e;
const GET_GRO: u32 = 0x2b;

/// Cards whose `rx-usecs` is the least time between two interrupts, not a delay after a packet (their drivers' ITR).
const INTERVAL: [&str; 8] = ["e1000e", "igb", "igc", "ixgbe", "ixgbevf", "i40e", "iavf", "ice"];

/// The number of a device in this network namespace.
pub fn number(name: &str) -> Result<i32, Error> {
    let missing = || Error::Usage(format!("there is no network device `{name}` here; /sys/class/net lists them"));
    let name = CString::new(name).map_err(|_| missing())?;
    // SAFETY: the name ends with a zero and lives through the call.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => Err(missing()),
        index => i32::try_from(index).map_err(|_| missing()),
    }
}

/// The name of a device by its number.
pub fn name(number: u32) -> Option<String> {
    let mut name = [0 as libc::c_char; libc::IF_NAMESIZE];
    // SAFETY: there is room for the longest name and its end.
    let found = unsafe { libc::if_indextoname(number, name.as_mut_ptr()) };
    let bytes: Vec<u8> = name.iter().take_while(|c| **c != 0).map(|c| c.to_ne_bytes()[0]).collect();
    String::from_utf8(bytes).ok().filter(|_| !found.is_null())
}

/// `struct ifreq` with a pointer.
#[repr(C)]
struct Request {
    name: [u8; libc::IF_NAMESIZE],
    data: *mut u32,
    rest: [u8; 16],
}

/// What ethtool answers to a question: the words of its structure; none where the card does not know it.
fn ask(name: &str, question: u32, words: usize) -> Option<Vec<u32>> {
    let socket = std::net::UdpSocket::bind((std::net::Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    // No structure that is asked for is larger.
    let mut answer = vec![0u32; words.max(64)];
    answer[0] = question;
    let mut request = Request { name: [0; libc::IF_NAMESIZE], data: answer.as_mut_ptr(), rest: [0; 16] };
    request.name.get_mut(..name.len())?.copy_from_slice(name.as_bytes());
    // SAFETY: the kernel reads the request and writes no more than the structure of the question, which fits into `answer`.
    let done = unsafe { libc::ioctl(socket.as_raw_fd(), ETHTOOL as _, &raw mut request) };
    (done == 0).then_some(answer)
}

/// The keys of `[hosts]` that a device's settings say.
pub fn settings(name: &str) -> Result<Vec<Measured>, Error> {
    number(name)?;
    let mut found = Vec::new();
    let mut add = |key, value: String, how: &str| found.push(Measured { key, value, how: how.to_owned() });
    let folder = Path::new("/sys/class/net").join(name);
    let queues = fs::read_dir(folder.join("queues")).into_iter().flatten().flatten();
    let queues = queues.filter(|entry| entry.file_name().to_string_lossy().starts_with("rx-")).count();
    if queues > 0 {
        add("processors", queues.min(64).to_string(), &format!("receive queues of {name}"));
    }
    if let Some(ring) = ask(name, GET_RING, 9).map(|words| words[5]).filter(|ring| (1..=65_535).contains(ring)) {
        add("ring", ring.to_string(), &format!("ethtool -g {name}: rx"));
    }
    if let Some(coalesce) = ask(name, GET_COALESCE, 23) {
        // Bytes 4 to 35 of `struct ethtool_drvinfo`.
        let driver = ask(name, GET_DRIVER, 49)
            .map(|words| words[1..9].iter().flat_map(|w| w.to_ne_bytes()).collect::<Vec<u8>>());
        let driver =
            driver.map(|bytes| String::from_utf8_lossy(&bytes).trim_end_matches('\0').to_owned()).unwrap_or_default();
        let key = if INTERVAL.contains(&driver.as_str()) { "interrupt_gap" } else { "interrupt_delay" };
        add(key, format!("\"{}us\"", coalesce[1]), &format!("ethtool -c {name}: rx-usecs ({driver})"));
        add("interrupt_frames", coalesce[2].min(65_535).to_string(), &format!("ethtool -c {name}: rx-frames"));
    }
    for (key, question) in [("tso", GET_TSO), ("gro", GET_GRO)] {
        if let Some(words) = ask(name, question, 2) {
            add(key, (words[1] != 0).to_string(), &format!("ethtool -k {name}"));
        }
    }
    let flush =
        fs::read_to_string(folder.join("gro_flush_timeout")).ok().and_then(|text| text.trim().parse::<u64>().ok());
    if let Some(flush) = flush {
        add("gro_flush_timeout", format!("\"{}ns\"", flush), &format!("/sys/class/net/{name}/gro_flush_timeout"));
    }
    Ok(found)
}
