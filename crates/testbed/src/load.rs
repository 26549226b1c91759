//! What one CPU can carry: asked before a run, by the rates alone. Whether it did is what the figures of the run say.

use crate::config::Config;
use fanin_fabric::network::{Network, Way};

/// Full packets to one host in a second that a switch on one CPU releases in time, with their acknowledgements; measured (docs/reference/linux.md).
const PACKETS_PER_S: f64 = 100_000.0;

/// The network of a run.
///
/// # Errors
/// A sentence: the file cannot be read, or does not fit the hosts.
pub fn network(config: &Config) -> Result<Network, String> {
    let path = config.network.display();
    let bytes = std::fs::read(&config.network).map_err(|e| format!("{path}: {e}"))?;
    let network = Network::decode(&bytes).ok_or_else(|| format!("{path}: this is no network"))?;
    if network.hosts as usize == config.hosts.len() {
        Ok(network)
    } else {
        Err(format!("the network has {} hosts and there are {}", network.hosts, config.hosts.len()))
    }
}

/// Whether the rates of this network can be kept at all.
///
/// # Errors
/// A sentence that names the rate and the most that would do.
pub fn check(config: &Config) -> Result<(), String> {
    let network = network(config)?;
    let wire = f64::from(config.mtu + network.connections.iter().map(|c| c.overhead).max().unwrap_or(0));
    let most = PACKETS_PER_S * 8.0 * wire;
    match fastest(&network) {
        Some(rate) if rate > most => Err(format!(
            "packets would reach a host at {} Gbps, {:.0} in a second, and the testbed releases {PACKETS_PER_S} in time; \
             lower the rate to {:.1} Gbps at most, or use --engine kernel",
            // Without the clocks' errors.
            (rate / 1e6).round() / 1e3,
            rate / 8.0 / wire,
            most / 1e9
        )),
        _ => Ok(()),
    }
}

/// The highest rate at which packets can reach a host, bits per second: of each way its slowest link, and of all ways to a host at most
/// the last link's.
fn fastest(network: &Network) -> Option<f64> {
    let rate = |&l: &u32| network.links[l as usize].rate_bps as f64;
    let slowest = |way: &Way| way.links.iter().map(rate).fold(f64::INFINITY, f64::min);
    let mut into = vec![0.0; network.links.len()];
    for connection in &network.connections {
        // Data goes one way and acknowledgements the other; which, is not known here.
        for way in &connection.ways {
            if let Some(&last) = way.links.last() {
                into[last as usize] += slowest(way);
            }
        }
    }
    let rates = into.iter().zip(&network.links).map(|(sum, link)| f64::min(*sum, link.rate_bps as f64));
    rates.reduce(f64::max)
}
