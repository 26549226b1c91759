//! What this host costs, measured: the keys of `[hosts]` in fanin's rack files and scenarios.
//!
//! The application's costs are measured by TCP over the loopback of this network namespace; what the network card does is read from it.
//! The processor time of single packets in the kernel cannot be told apart from outside: those keys stay with the preset.

use crate::device;
use crate::error::Error;
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// Reads and exchanges of each measurement.
const TIMES: usize = 2_000;
/// Bytes of the reads that show what copying costs.
const PIECE: usize = 16 << 10;
/// What moves nothing for so long will not.
const PATIENCE: Duration = Duration::from_secs(5);
/// The preset whose values stay where nothing is measured.
const PRESET: &str = "10g";

/// One key with its value as TOML, and where it comes from.
pub struct Measured {
    /// Of `[hosts]`.
    pub key: &'static str,
    /// As TOML.
    pub value: String,
    /// In words.
    pub how: String,
}

/// All that can be measured on this host, and read of its network device.
pub fn all(name: Option<&str>) -> Result<Vec<Measured>, Error> {
    let mut found = application().map_err(Error::kernel("TCP over the loopback (ip link set lo up)"))?;
    if let Some(name) = name {
        found.extend(device::settings(name)?);
    }
    Ok(found)
}

/// A file that `hosts = "measured.toml"` names.
pub fn written(all: &[Measured]) -> String {
    let mut text = format!("# Measured by fanin-host; every other key is that of the preset.\npreset = \"{PRESET}\"\n");
    for Measured { key, value, how } in all {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{key} = {value} # {how}");
    }
    text
}

fn application() -> std::io::Result<Vec<Measured>> {
    let (mut near, mut far) = pair()?;
    let (read, copy) = reading(&mut near, &mut far)?;
    let send = sending(&mut near, &mut far)?;
    let wakeup = waking(near, far)?.saturating_sub(send + read);
    let micros = |time: Duration| format!("\"{:.3}us\"", time.as_secs_f64() * 1e6);
    let of = |key, time, how: &str| Measured { key, value: micros(time), how: how.to_owned() };
    Ok(vec![
        of(
            "wakeup",
            wakeup,
            "from the send of a byte until a reader that slept has it, less a send to one that is awake and a read",
        ),
        of("read_time", read, "a read of one byte that is there"),
        of("copy_time", copy, "a read of 16 KiB that are there, for each KiB"),
    ])
}

/// The two ends of a connection.
fn pair() -> std::io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let near = TcpStream::connect_timeout(&listener.local_addr()?, Duration::from_secs(2))?;
    let (far, _) = listener.accept()?;
    for end in [&near, &far] {
        end.set_nodelay(true)?;
        end.set_read_timeout(Some(PATIENCE))?;
        end.set_write_timeout(Some(PATIENCE))?;
    }
    Ok((near, far))
}

/// The lower quartile: what else runs on the host only adds.
fn quartile(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 4).copied().unwrap_or_default()
}

/// A read of one byte, and of one KiB more: from a queue with more in it, so that few of the reads send an ACK.
fn reading(near: &mut TcpStream, far: &mut TcpStream) -> std::io::Result<(Duration, Duration)> {
    const QUEUE: usize = 64 << 10;
    let mut room = vec![0; QUEUE];
    let mut timed = |size: usize| -> std::io::Result<Duration> {
        let mut all = Vec::with_capacity(TIMES);
        while all.len() < TIMES {
            near.write_all(&room)?;
            // All of it has arrived when the last byte can be seen.
            let began = Instant::now();
            while far.peek(&mut room)? < QUEUE {
                if began.elapsed() > PATIENCE {
                    return Err(std::io::Error::other("no 64 KiB at once go through (net.ipv4.tcp_rmem, tcp_wmem)"));
                }
            }
            let reads = (QUEUE / size).min(TIMES);
            for _ in 0..reads {
                let began = Instant::now();
                far.read_exact(&mut room[..size])?;
                all.push(began.elapsed());
            }
            far.read_exact(&mut room[..QUEUE - reads * size])?;
        }
        Ok(quartile(all))
    };
    let (one, many) = (timed(1)?, timed(PIECE)?);
    Ok((one, many.saturating_sub(one) / (PIECE >> 10) as u32))
}

/// A send of one byte, its way through TCP to the other end's queue included, while no process waits there.
fn sending(near: &mut TcpStream, far: &mut TcpStream) -> std::io::Result<Duration> {
    let mut all = Vec::with_capacity(TIMES);
    for _ in 0..TIMES {
        let began = Instant::now();
        near.write_all(&[1])?;
        all.push(began.elapsed());
    }
    far.read_exact(&mut [0; TIMES])?;
    Ok(quartile(all))
}

/// From the begin of a send until an application that slept has read it.
fn waking(near: TcpStream, mut far: TcpStream) -> std::io::Result<Duration> {
    let origin = Instant::now();
    let now = move || origin.elapsed().as_nanos() as u64;
    let reader = std::thread::spawn(move || -> std::io::Result<Vec<u64>> {
        let mut byte = [0];
        (0..TIMES)
            .map(|_| {
                far.read_exact(&mut byte)?;
                Ok(now())
            })
            .collect()
    });
    let mut sent = Vec::with_capacity(TIMES);
    let mut near = near;
    for _ in 0..TIMES {
        // Long enough for the reader to sleep again.
        std::thread::sleep(Duration::from_micros(200));
        sent.push(now());
        near.write_all(&[1])?;
    }
    let woken = reader.join().unwrap_or_else(|_| Err(std::io::Error::other("the reading thread ended")))?;
    Ok(quartile(sent.iter().zip(woken).map(|(s, w)| Duration::from_nanos(w.saturating_sub(*s))).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_costs_of_this_host_stand_in_toml() {
        let all = all(None).unwrap();
        assert_eq!(all.iter().map(|m| m.key).collect::<Vec<_>>(), ["wakeup", "read_time", "copy_time"]);
        let file: toml::Table = written(&all).parse().unwrap();
        assert_eq!(file["preset"].as_str(), Some(PRESET));
        for key in ["wakeup", "read_time", "copy_time"] {
            let time: f64 = file[key].as_str().unwrap().strip_suffix("us").unwrap().parse().unwrap();
            // On a busy host the reader is awake already, and the rest of the measurement is as long as all of it.
            let least = if key == "wakeup" { 0.0 } else { f64::MIN_POSITIVE };
            assert!((least..1e5).contains(&time), "{key}: {time} us");
        }
    }
}
