//! Two network namespaces of a test's own, and the program in one of them.

use std::path::PathBuf;
use std::process::{Command, Output};

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_fanin-host");

/// Two namespaces with a link between them, 10.9.0.1 and 10.9.0.2, and a folder for the state.
pub struct Net {
    pub near: String,
    pub far: String,
    pub folder: PathBuf,
}

impl Net {
    /// `None`, with the reason printed, where namespaces cannot be made.
    pub fn new(name: &str) -> Option<Net> {
        let names = ["a", "b"].map(|end| format!("fh-{}-{name}-{end}", std::process::id()));
        let [near, far] = names;
        for namespace in [&near, &far] {
            if let Err(why) = sh(&format!("ip netns add {namespace} && ip -n {namespace} link set lo up")) {
                println!("skipped: no network namespaces here: {why}");
                return None;
            }
        }
        let folder = std::env::temp_dir().join(&near);
        let net = Net { near, far, folder };
        let (near, far) = (&net.near, &net.far);
        sh(&format!(
            "ip -n {near} link add d0 type veth peer name d1 netns {far} && ip -n {near} link set d0 addrgenmode none &&
             ip -n {near} addr add 10.9.0.1/24 dev d0 && ip -n {near} -6 addr add fd00::1/64 dev d0 nodad && ip -n {near} link set d0 up &&
             ip -n {far} addr add 10.9.0.2/24 dev d1 && ip -n {far} link set d1 up &&
             ip -n {near} route add default via 10.9.0.2 && ip -n {near} route add 10.9.0.7 dev d0 initcwnd 4 mtu 1400 &&
             ip -n {near} route add 10.9.0.8 nexthop via 10.9.0.2 weight 1 nexthop via 10.9.0.3 weight 2"
        ))
        .unwrap();
        Some(net)
    }

    pub fn within(&self, words: &[&str]) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.near]).args(words);
        command
    }

    pub fn host(&self, words: &[&str]) -> Output {
        let folder = self.folder.display().to_string();
        self.within(&[&[PROGRAM, "--state", &folder], words].concat()).output().unwrap()
    }

    /// The answer of a command that must succeed.
    pub fn done(&self, words: &[&str]) -> serde_json::Value {
        let output = self.host(words);
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Everything that a change may touch, as other programs show it, and the names in the folder.
    pub fn all(&self) -> String {
        let near = &self.near;
        // Sysctls that count or draw numbers change by themselves; twins of other tests come and go.
        let shown = sh(&format!(
            "ip -n {near} route show table all; ip -n {near} -6 route show table all;
             ip netns exec {near} sysctl -a 2>/dev/null | grep -E '^net.ipv4.tcp' | grep -v -E 'tcp_fastopen_key|_mem|(available|allowed)_congestion'"
        ))
        .unwrap();
        let kept = std::fs::read_dir(&self.folder).into_iter().flatten();
        let kept: Vec<String> =
            kept.map(|entry| entry.unwrap().file_name().into_string().unwrap()).filter(|name| name != "lock").collect();
        format!("{shown}\n{kept:?}")
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        for namespace in [&self.near, &self.far] {
            let _ = sh(&format!("ip netns del {namespace}"));
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Fails with the lines that differ.
pub fn same(now: &str, before: &str, when: &str) {
    let lost: Vec<&str> = before.lines().filter(|line| !now.lines().any(|other| other == *line)).collect();
    let new: Vec<&str> = now.lines().filter(|line| !before.lines().any(|other| other == *line)).collect();
    assert!(now == before, "{when}: gone: {lost:#?} new: {new:#?}");
}

/// What a shell line prints, or what it says when it fails.
pub fn sh(line: &str) -> Result<String, String> {
    let output = Command::new("sh").args(["-c", line]).output().map_err(|e| e.to_string())?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}
