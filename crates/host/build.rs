//! Compiles the twins and the receivers' programs for BPF, where the feature asks for it.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=../../kernel/cc");
    println!("cargo::rerun-if-changed=../../kernel/receiver");
    if std::env::var_os("CARGO_FEATURE_BPF").is_none() {
        return;
    }
    let out = std::env::var("OUT_DIR").expect("cargo sets it for build scripts");
    let arch = std::env::var("CARGO_CFG_TARGET_ARCH").expect("cargo sets it for build scripts");
    let (define, include) = match arch.as_str() {
        "x86_64" => ("-D__TARGET_ARCH_x86", "/usr/include/x86_64-linux-gnu"),
        "aarch64" => ("-D__TARGET_ARCH_arm64", "/usr/include/aarch64-linux-gnu"),
        other => panic!("the twins are not built for {other}; add its name in crates/host/build.rs"),
    };
    let twins = ["dctcp", "d2tcp", "l2dct", "vegas", "dcvegas", "trim", "gss_reno", "gss_cubic", "gss_dctcp"];
    let receivers = ["iatcp", "ictcp"];
    let all = twins.map(|file| ("cc", file)).into_iter().chain(receivers.map(|file| ("receiver", file)));
    for (folder, file) in all {
        let source = Path::new("../../kernel").join(folder).join(format!("{file}.c"));
        let object = Path::new(&out).join(format!("{file}.bpf.o"));
        let done = Command::new("clang")
            .args(["-O2", "-g", "-target", "bpf", "-mcpu=v3", "-Wall", "-Wno-unused", define, "-I", include, "-c"])
            .arg(&source)
            .arg("-o")
            .arg(&object)
            .status()
            .expect("clang does not start; apt install clang libbpf-dev libelf-dev zlib1g-dev");
        assert!(done.success(), "clang refuses {}", source.display());
    }
}
