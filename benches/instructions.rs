//! Instructions per packet-hop, counted by callgrind: unlike seconds they do not depend on what else the machine does.
//! `cargo bench -p fanin-benches --bench instructions`; needs valgrind.
#![allow(missing_docs, clippy::unwrap_used)]

use fanin_benches::{fat_tree, plan, run, star};
use std::process::Command;

/// Set for the process under callgrind: the scene, and whether it is the long run.
const SCENE: &str = "FANIN_BENCH_SCENE";

/// Each scene's name, and its text for a short and a long run: the difference leaves the set-up out.
fn scenes() -> Vec<(&'static str, [String; 2])> {
    vec![
        ("star 40 to 1, newreno", ["5ms", "25ms"].map(|end| star("newreno", end))),
        ("star 40 to 1, dctcp", ["5ms", "25ms"].map(|end| star("dctcp", end))),
        ("fat-tree 128 hosts, dctcp", ["100us", "300us"].map(|end| fat_tree(8, "dctcp", end))),
    ]
}

fn main() {
    if let Ok(scene) = std::env::var(SCENE) {
        let (scene, run_of) =
            scene.split_once(' ').and_then(|(s, r)| Some((s.parse().ok()?, r.parse().ok()?))).unwrap_or((0, 0));
        let (_, texts): &(_, [String; 2]) = &scenes()[scene];
        println!("{}", run(&plan(&texts[run_of])).packet_hops);
        return;
    }
    if Command::new("valgrind").arg("--version").output().is_err() {
        println!("skipped: valgrind is not installed");
        return;
    }
    for (number, (name, _)) in scenes().iter().enumerate() {
        match (count(number, 0), count(number, 1)) {
            (Some((few, short)), Some((many, long))) => {
                println!("{name}: {:.0} instructions per hop", (many - few) / (long - short));
            }
            _ => println!("{name}: callgrind gave no count"),
        }
    }
}

/// Instructions and packet-hops of one run.
fn count(scene: usize, run_of: usize) -> Option<(f64, f64)> {
    let done = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(std::env::current_exe().ok()?)
        .env(SCENE, format!("{scene} {run_of}"))
        .output()
        .ok()?;
    let told = String::from_utf8_lossy(&done.stderr).into_owned();
    let instructions = told.lines().find_map(|l| l.split_once("Collected :"))?.1.trim().parse().ok()?;
    Some((instructions, String::from_utf8_lossy(&done.stdout).trim().parse().ok()?))
}
