//! Compiles the twins and the receivers' programs for BPF, where the feature asks for it.

use std::fmt::Write;
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
    let mut objects = String::new();
    for (folder, file) in programs() {
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
        writeln!(objects, "(\"{file}.c\", aligned!({object:?})),").expect("a string takes what is written");
    }
    std::fs::write(Path::new(&out).join("objects.rs"), format!("&[{objects}]")).expect("OUT_DIR can be written");
}

/// Every C file of both folders, by folder and stem: all of them are programs, what they share is in headers.
fn programs() -> Vec<(&'static str, String)> {
    let mut all = Vec::new();
    for folder in ["cc", "receiver"] {
        let files =
            std::fs::read_dir(Path::new("../../kernel").join(folder)).expect("the sources are in the repository");
        let paths = files.map(|entry| entry.expect("a folder that was opened can be read").path());
        all.extend(paths.filter(|path| path.extension().is_some_and(|end| end == "c")).map(|path| {
            let stem = path.file_stem().expect("a file with an extension has a stem");
            (folder, stem.to_string_lossy().into_owned())
        }));
    }
    all.sort();
    all
}
