//! Every damaged file ends in one clear sentence, and in results for its front where the front is readable.

use crate::common::{data, run, run_bytes};
use fanin_capture::{CaptureError, Options, analyse};
use std::fmt::Write;
use std::ops::ControlFlow;
use std::path::Path;

#[test]
fn every_damaged_file_has_its_message_and_what_could_be_read() {
    let mut names: Vec<String> = std::fs::read_dir(data().join("bad"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names.len(), 23);
    let mut report = String::new();
    for name in names {
        writeln!(report, "{name}").unwrap();
        match run(&format!("bad/{name}")) {
            Ok(a) => {
                let s = &a.summary;
                writeln!(
                    report,
                    "  results: {} packets, {} connections, {} B",
                    s.packets, s.connections, s.payload_bytes
                )
                .unwrap();
                for warning in &a.warnings {
                    writeln!(report, "  warning: {warning}").unwrap();
                }
                if let Some(partial) = &a.partial {
                    assert_eq!(partial.packets, s.packets);
                    writeln!(report, "  partial: {partial}").unwrap();
                }
            }
            Err(e) => {
                let text = e.to_string();
                let text = text.strip_prefix(&data().join("bad").display().to_string()).unwrap_or(&text);
                writeln!(report, "  error: {}", text.trim_start_matches('/')).unwrap();
            }
        }
    }
    insta::assert_snapshot!(report);
}

fn message(result: Result<fanin_capture::Analysis, CaptureError>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn what_is_not_a_capture_is_named_for_what_it_is() {
    let mut report = String::new();
    let magic = |bytes: &[u8]| message(run_bytes(&[bytes, &[0; 64]].concat()));
    for (what, text) in [
        ("nothing", message(run_bytes(b""))),
        ("zstd", magic(&[0x28, 0xb5, 0x2f, 0xfd])),
        ("xz", magic(&[0xfd, b'7', b'z', b'X', b'Z', 0])),
        ("bzip2", magic(b"BZh9")),
        ("zip", magic(b"PK\x03\x04")),
        ("zeros", magic(&[0])),
        ("gzip of nothing", message(run_bytes(&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0]))),
        ("gzip header alone", message(run_bytes(&[0x1f, 0x8b, 8, 0]))),
        ("pcapng byte order", magic(b"\x0a\x0d\x0d\x0a\x1c\0\0\0abcd")),
    ] {
        writeln!(report, "{what}: {text}").unwrap();
    }
    insta::assert_snapshot!(report);
}

#[test]
fn a_missing_file_and_a_directory_are_told_apart() {
    let at = |name: &str| message(analyse(Path::new(name), &Options::default(), &mut |_| ControlFlow::Continue(())));
    insta::assert_snapshot!(at("/no/such/file.pcap"), @"/no/such/file.pcap: there is no such file; check the name");
    insta::assert_snapshot!(at("/"), @"/: this is a directory, not a capture; name a file in it");
}

#[test]
fn garbage_behind_a_gzip_member_leaves_the_packets_before_it() {
    let mut bytes = std::fs::read(data().join("formats/same400_le_usec.pcap.gz")).unwrap();
    bytes.extend(b"something else");
    let a = run_bytes(&bytes).unwrap();
    assert_eq!(a.summary.packets, 400);
    insta::assert_snapshot!(a.partial.unwrap(), @"the gzip data are corrupt: invalid gzip header (byte 41742); the results are about the 400 packets before it, so capture again to have the rest");
}

#[test]
fn a_packet_of_more_than_256_kib_is_damage() {
    let packets = |stored: u32| {
        let head = [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 1 << 20, 1, 0, 0, stored, stored];
        let mut bytes: Vec<u8> = head.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.resize(bytes.len() + stored as usize, 0);
        run_bytes(&bytes)
    };
    // Zeros are no TCP.
    assert!(matches!(packets(262_144), Err(CaptureError::NoTcp { packets: 1, .. })));
    assert!(matches!(packets(262_145), Err(CaptureError::Damaged { .. })));
}

#[test]
fn the_callback_sees_the_bytes_pass_and_can_stop_the_work() {
    let path = data().join("http_onoff_8to1.pcap.gz");
    let size = std::fs::metadata(&path).unwrap().len();
    let mut calls = Vec::new();
    analyse(&path, &Options::default(), &mut |p| {
        calls.push((p.bytes_read, p.packets));
        assert_eq!(p.bytes_total, Some(size));
        ControlFlow::Continue(())
    })
    .unwrap();
    assert!(calls.len() >= 3 && calls.is_sorted());
    assert_eq!(calls.last(), Some(&(size, 73_483)));

    let stopped = analyse(&path, &Options::default(), &mut |_| ControlFlow::Break(()));
    assert!(matches!(stopped, Err(CaptureError::Interrupted { packets: 32_768, .. })));
}
