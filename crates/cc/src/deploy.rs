//! Where an algorithm can run on real hosts: what `fanin list cc` shows and what an answer may recommend.

#[cfg(not(feature = "std"))]
use crate::bare::*;
use core::fmt;

/// One way to run an algorithm outside the simulator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// Mainline Linux has it, as the congestion control of this name (built in or a module of the distribution).
    Kernel(&'static str),
    /// fanin's twin (`kernel/cc/<name>.c`) loads it into a running Linux by BPF, or the virtual kernel has it built in.
    Twin(&'static str),
    /// A library in front of the sending application (`LD_PRELOAD`).
    SenderShim,
    /// A program on the receiving host that sets the window it advertises.
    ReceiverShim,
    /// A slow start, in a kernel only together with this sender.
    With {
        /// The sender's name in the registry.
        sender: &'static str,
        /// The congestion control that is both.
        kernel: bool,
        /// Its name there.
        name: &'static str,
    },
}

/// Where a whole name such as `gss+dctcp` can run on real hosts.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Deployment {
    /// Congestion control of mainline Linux that it is, or that runs under the shim.
    pub kernel: Option<&'static str>,
    /// fanin's twin that it is.
    pub twin: Option<&'static str>,
    /// It needs the library in front of the sending application.
    pub sender_shim: bool,
    /// It needs the program on the receiving host.
    pub receiver_shim: bool,
}

impl Deployment {
    /// What the parts of one name, the sender last, make together. Each part says its places; none means: the simulator alone.
    pub(crate) fn of(parts: &[(&'static str, &'static [Place])]) -> Deployment {
        let mut made = Deployment::default();
        let Some(&(sender, places)) = parts.last() else { return made };
        for place in places {
            match place {
                Place::Kernel(name) => made.kernel = Some(name),
                Place::Twin(name) => made.twin = Some(name),
                Place::SenderShim => made.sender_shim = true,
                Place::ReceiverShim => made.receiver_shim = true,
                Place::With { .. } => {}
            }
        }
        for (_, places) in &parts[..parts.len() - 1] {
            let shims = [Place::SenderShim, Place::ReceiverShim];
            if let Some(shim) = places.iter().find(|p| shims.contains(p)) {
                made.sender_shim |= *shim == Place::SenderShim;
                made.receiver_shim |= *shim == Place::ReceiverShim;
                continue;
            }
            let (mut kernel_name, mut twin_name) = (None, None);
            for place in places.iter() {
                if let Place::With { sender: with, kernel, name } = *place
                    && with == sender
                {
                    *(if kernel { &mut kernel_name } else { &mut twin_name }) = Some(name);
                }
            }
            // The sender alone is another algorithm.
            (made.kernel, made.twin) = (kernel_name, twin_name);
        }
        if made.kernel.is_none() && made.twin.is_none() { Deployment::default() } else { made }
    }
}

impl fmt::Display for Deployment {
    /// `kernel (dctcp), twin (fanin_dctcp)`, `application shim over kernel (cubic)`, or `simulator only`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bases = Vec::new();
        bases.extend(self.kernel.map(|name| format!("kernel ({name})")));
        bases.extend(self.twin.map(|name| format!("twin ({name})")));
        let shims: Vec<&str> = [(self.sender_shim, "application shim"), (self.receiver_shim, "receiver shim")]
            .into_iter()
            .filter_map(|(needed, name)| needed.then_some(name))
            .collect();
        match (bases.is_empty(), shims.is_empty()) {
            (true, _) => f.write_str("simulator only"),
            (false, true) => f.write_str(&bases.join(", ")),
            (false, false) => write!(f, "{} over {}", shims.join(" and "), bases.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Deployment;
    use crate::registry::deployment;

    fn shown(spec: &str) -> String {
        deployment(spec).unwrap().to_string()
    }

    #[test]
    fn a_name_says_where_all_of_it_can_run() {
        assert_eq!(shown("newreno"), "kernel (reno)");
        assert_eq!(shown("dctcp"), "kernel (dctcp), twin (fanin_dctcp)");
        assert_eq!(shown("trim"), "twin (fanin_trim)");
        assert_eq!(shown("gss+dctcp"), "twin (fanin_gss_dctcp)");
        assert_eq!(shown("tcprand+cubic"), "application shim over kernel (cubic)");
        assert_eq!(shown("hystart+cubic"), "kernel (cubic)");
        assert_eq!(shown("ictcp"), "receiver shim over kernel (reno)");
    }

    #[test]
    fn a_slow_start_makes_its_sender_another_algorithm() {
        // Linux has Vegas, but not under GSS; HyStart is CUBIC's.
        assert_eq!(shown("gss+vegas"), "simulator only");
        assert_eq!(shown("hystart+newreno"), "simulator only");
        assert_eq!(deployment("gss+trim").unwrap(), Deployment::default());
        assert_eq!(shown("tcprand+gss+vegas"), "simulator only");
    }

    #[test]
    fn every_congestion_control_of_linux_has_a_name_that_fits() {
        use crate::deploy::Place;
        for algorithm in crate::algorithms::ALGORITHMS.iter() {
            for place in algorithm.deploy {
                if let Place::Kernel(name) | Place::Twin(name) | Place::With { name, .. } = place {
                    // TCP_CA_NAME_MAX is 16 with the closing zero.
                    assert!(name.len() <= 15, "{name}");
                }
            }
        }
    }
}
