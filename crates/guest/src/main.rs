//! Process 1 of the virtual kernel: mounts what it needs, makes a network namespace for each host, plays, writes the log, powers off.
//!
//! It does with system calls what a script would do with `mount`, `ip` and `sysctl`: starting a process takes this kind of kernel longer
//! than anything else here.

mod netlink;
mod sys;

use fanin_guest::{Card, Counter, Guest, Host, files, namespace};
use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;

/// The folder that the kernel was started in, and where it is seen here.
const OUTSIDE: &str = "/proc/self/cwd";
const SHARED: &str = "/run/fanin";

fn main() {
    if std::process::id() != 1 {
        eprintln!("fanin-guest is process 1 of fanin's virtual kernel; `fanin run SCENARIO --engine kernel` starts it");
        std::process::exit(2);
    }
    if let Err(why) = mount().and_then(|()| run()) {
        // Without the shared folder there is only the console.
        eprintln!("fanin-guest: {why}");
        let _ = fs::write(Path::new(SHARED).join(files::FAILURE), &why);
    }
    sys::power_off();
}

fn mount() -> Result<(), String> {
    sys::many_files()?;
    sys::mount("proc", "/proc", "proc", "")?;
    sys::mount("tmpfs", "/run", "tmpfs", "")?;
    for folder in ["/run/netns", SHARED] {
        fs::create_dir(folder).map_err(|e| format!("{folder}: {e}"))?;
    }
    // Paths of hostfs are the host's: there, the kernel is a process with a current folder.
    sys::mount("none", SHARED, "hostfs", OUTSIDE)
}

fn run() -> Result<(), String> {
    let shared = Path::new(SHARED);
    let text = read(&shared.join(files::GUEST))?;
    let guest: Guest = serde_json::from_slice(&text).map_err(|e| format!("{}: {e}", files::GUEST))?;
    command(&format!("network {OUTSIDE}/{}", files::NETWORK))?;
    command(&format!("record {OUTSIDE}/{}", files::RECORD))?;
    if guest.notes {
        command(&format!("notes {OUTSIDE}/{}", files::NOTES))?;
    }
    for (what, file) in [("cc", files::PROGRAMS), ("receivers", files::RECEIVERS)] {
        if shared.join(file).exists() {
            command(&format!("{what} {OUTSIDE}/{file}"))?;
        }
    }
    set(&guest.sysctls)?;
    for (number, (host, player)) in guest.hosts.iter().zip(&guest.plan.hosts).enumerate() {
        make_host(number, host, player.address).map_err(|e| format!("host {number}: {e}"))?;
    }
    let log = fanin_player::play(&guest.plan, &mut |share| {
        // Whoever watches from outside sees that time passes; without it only the display stands still.
        let _ = fs::write(shared.join(files::PROGRESS), share.to_string());
    })?;
    command("finish").map_err(|e| format!("{e}; the console says why"))?;
    let counters = counters(guest.hosts.len())?;
    write(&shared.join(files::COUNTERS), &serde_json::to_vec(&counters).map_err(|e| e.to_string())?)?;
    write(&shared.join(files::LOG), &serde_json::to_vec(&log).map_err(|e| e.to_string())?)
}

/// A namespace with a device, an address and a route to every host.
fn make_host(number: usize, host: &Host, address: Ipv4Addr) -> Result<(), String> {
    sys::new_network()?;
    let path = namespace(number);
    write(&path, b"")?;
    sys::bind("/proc/thread-self/ns/net", &path.to_string_lossy())?;
    let Host { mtu, tso, whole, overhead, .. } = host;
    command(&format!("host {number} {mtu} {} {whole} {overhead}", u8::from(*tso)))?;
    if let Some(Card { gro, budget, frames, delay_ns, gap_ns, flush_ns }) = &host.card {
        let gro = u8::from(*gro);
        command(&format!("receive {number} {gro} {budget} {frames} {delay_ns} {gap_ns} {flush_ns}"))?;
    }
    set(&host.sysctls)?;
    let mut netlink = netlink::Socket::open()?;
    netlink.configure("eth0", address, host.initial_window, host.quickack)
}

fn set(sysctls: &[(String, String)]) -> Result<(), String> {
    sysctls.iter().try_for_each(|(name, value)| write(&Path::new("/proc/sys").join(name), value.as_bytes()))
}

fn command(text: &str) -> Result<(), String> {
    fs::write("/proc/fanin", text).map_err(|e| format!("/proc/fanin: `{text}`: {e}"))
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|e| format!("{}: {e}", path.display()))
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), String> {
    fs::write(path, bytes).map_err(|e| format!("{}: {e}", path.display()))
}

/// Every counter of every host that is not zero.
fn counters(hosts: usize) -> Result<Vec<Counter>, String> {
    let mut all = Vec::new();
    for host in 0..hosts {
        fanin_player::sys::enter_namespace(&namespace(host)).map_err(|e| format!("host {host}: {e}"))?;
        for file in ["/proc/net/snmp", "/proc/net/netstat"] {
            let text = fs::read_to_string(file).map_err(|e| format!("{file}: {e}"))?;
            let lines: Vec<&str> = text.lines().collect();
            // Two lines each: names, then values.
            for pair in lines.chunks_exact(2) {
                for (name, value) in pair[0].split_whitespace().zip(pair[1].split_whitespace()) {
                    if let Some(value) = value.parse().ok().filter(|&n: &u64| n != 0) {
                        all.push((host as u32, name.to_owned(), value));
                    }
                }
            }
        }
    }
    Ok(all)
}
