//! The source of a BPF congestion control (`SEC(".struct_ops")`), as the simulator compiles it: what registers its operations.

/// The headers of BPF that such a file includes; each is `shim/fanin_bpf.h`.
pub(crate) const HEADERS: &[&str] =
    &["bpf/bpf_helpers.h", "bpf/bpf_tracing.h", "bpf/bpf_core_read.h", "bpf/bpf_endian.h"];

/// Those that programs keep beside them; ours go first.
pub(crate) const BESIDE: &[&str] = &["vmlinux.h", "bpf_tracing_net.h"];

/// What to compile after the file: registration of its operations; `None` for a file that is no BPF source.
///
/// libbpf registers every `struct tcp_congestion_ops` of the section `.struct_ops`. The simulator takes the first that is complete.
pub(crate) fn registration(source: &str) -> Option<String> {
    if !source.contains("SEC(\".struct_ops") {
        return None;
    }
    let names = source.split("struct tcp_congestion_ops").skip(1).filter_map(|rest| {
        let rest = rest.trim_start();
        let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        let defined = rest[name.len()..].trim_start().starts_with('=');
        (defined && !name.is_empty()).then_some(name)
    });
    let calls: String = names.map(|name| format!(" fanin_register_bpf(&{name});")).collect();
    Some(format!(
        "\nextern void fanin_register_bpf(struct tcp_congestion_ops *);\nint fanin_module_init(void) {{{calls} return 0; }}\n"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_definition_is_registered_and_no_declaration() {
        let source = "extern struct tcp_congestion_ops other;\nSEC(\".struct_ops.link\")\nstruct tcp_congestion_ops mine = {\n};";
        let text = registration(source).unwrap();
        assert!(text.contains("fanin_register_bpf(&mine);"));
        assert!(!text.contains("other"));
        assert_eq!(registration("static struct tcp_congestion_ops mine = {};"), None);
    }
}
