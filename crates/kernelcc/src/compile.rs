//! A C file becomes a shared object in the cache, once per content, compiler and shim.

use crate::{Error, bpf, twins};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const SHIM: &str = include_str!("../shim/fanin_shim.h");
const BPF: &str = include_str!("../shim/fanin_bpf.h");
const GLUE: &str = include_str!("../shim/glue.c");

/// The kernel's headers that a congestion control may include; each is the shim.
const KERNEL_HEADERS: &[&str] = &[
    "asm/div64.h",
    "asm/unaligned.h",
    "linux/bitops.h",
    "linux/bpf.h",
    "linux/btf.h",
    "linux/btf_ids.h",
    "linux/errno.h",
    "linux/inet.h",
    "linux/inet_diag.h",
    "linux/init.h",
    "linux/jiffies.h",
    "linux/kernel.h",
    "linux/ktime.h",
    "linux/math64.h",
    "linux/minmax.h",
    "linux/mm.h",
    "linux/module.h",
    "linux/moduleparam.h",
    "linux/random.h",
    "linux/sched.h",
    "linux/skbuff.h",
    "linux/slab.h",
    "linux/string.h",
    "linux/tcp.h",
    "linux/time.h",
    "linux/types.h",
    "linux/vmalloc.h",
    "linux/win_minmax.h",
    "net/inet_connection_sock.h",
    "net/sock.h",
    "net/tcp.h",
];

/// As the kernel is compiled: its arithmetic wraps and its casts alias.
const FLAGS: &[&str] = &[
    "-std=gnu11",
    "-O2",
    "-fPIC",
    "-shared",
    "-fno-strict-aliasing",
    "-fwrapv",
    "-fvisibility=hidden",
    "-fno-math-errno",
    "-Werror=implicit-function-declaration",
    "-Werror=incompatible-pointer-types",
    "-Werror=int-conversion",
    "-fno-diagnostics-color",
    "-fdiagnostics-show-option",
    "-Wl,-z,defs",
    // An allocation that the limit of memory refuses is told (glue.c).
    "-Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc",
];

/// A compiled file.
#[derive(Clone, Debug)]
pub struct Object {
    /// The shared object.
    pub path: PathBuf,
    /// Changes with anything that may change what it does.
    pub version: String,
    /// The headers of the user's own that it was made from.
    pub headers: Vec<PathBuf>,
}

/// The folder for compiled files: `$XDG_CACHE_HOME/fanin/cc`, or `~/.cache/fanin/cc`, or the system's temporary folder.
fn place() -> PathBuf {
    let base = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(|p| p.is_absolute())
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache")))
        .unwrap_or_else(std::env::temp_dir);
    base.join("fanin").join("cc")
}

/// That folder, made where it is missing.
///
/// # Errors
/// [`Error::Cache`]: it cannot be made.
pub fn cache() -> Result<PathBuf, Error> {
    let cache = place();
    fs::create_dir_all(&cache).map_err(|e| cannot(&cache, e))?;
    Ok(cache)
}

fn cannot(what: &Path, error: std::io::Error) -> Error {
    Error::Cache(format!("cannot write {}: {error}", what.display()))
}

/// Compiles the file of this content; `folder` is where its own headers are, and `work` an empty folder of the cache, if the caller has made one.
///
/// # Errors
/// [`Error`]: no compiler, what it says, or a cache that cannot be written.
pub fn compile(name: &str, source: &str, folder: Option<&Path>, work: Option<&Path>) -> Result<Object, Error> {
    let registration = bpf::registration(source);
    // Sources for BPF are written for clang, whose constant expressions are wider.
    let usual = if registration.is_some() && has_clang() { "clang" } else { "cc" };
    let compiler = std::env::var("CC").unwrap_or_else(|_| usual.to_owned());
    let cache = cache()?;
    let own = work.is_none().then(|| Work::new(&cache)).transpose().map_err(|e| cannot(&cache, e))?;
    let work = own.as_ref().map_or(work, |own| Some(&own.0)).unwrap_or(&cache);
    let (file, glue) = laid_out(work, name, source, registration.as_deref())?;
    let run = |extra: &[&str], files: &[&Path], out: &Path| -> Result<Output, Error> {
        let mut command = Command::new(&compiler);
        // Temporary files go with the folder, however this process ends; a wrapper that keeps what it compiled would write elsewhere.
        command.env("LC_ALL", "C").env("TMPDIR", work).env("CCACHE_DISABLE", "1").args(FLAGS).args(extra);
        // Quoted headers beside the user's file first, then the kernel's names.
        if let Some(folder) = folder {
            command.arg("-iquote").arg(folder);
        }
        command.arg("-I").arg(work.join("include")).arg("-I").arg(work).arg("-iquote").arg(work.join("twins"));
        command.args(files).arg("-o").arg(out);
        command.output().map_err(|e| Error::NoCompiler { compiler: compiler.clone(), why: e.to_string() })
    };
    // What the file is after its headers decides the name in the cache.
    let expanded = work.join("expanded");
    let rule = work.join("rule");
    let done = run(&["-E", "-P", "-MMD", "-MF", &rule.to_string_lossy()], &[&file], &expanded)?;
    if !done.status.success() {
        return Err(explain(&done, &file));
    }
    let headers = named(&fs::read_to_string(&rule).unwrap_or_default(), work);
    let version = version(&compiler, &fs::read(&expanded).map_err(|e| cannot(&expanded, e))?);
    let path = cache.join(format!("{}-{version}.so", name.trim_end_matches(".c")));
    if !path.exists() {
        let made = work.join("made.so");
        let done = run(&[], &[&file, &glue], &made)?;
        if !done.status.success() {
            return Err(explain(&done, &file));
        }
        // Another process may have made the same one: either will do.
        fs::rename(&made, &path).map_err(|e| cannot(&path, e))?;
    }
    Ok(Object { path, version, headers })
}

/// Writes the user's file, what stands in for the kernel's headers, and the glue; where file and glue are.
fn laid_out(work: &Path, name: &str, source: &str, registration: Option<&str>) -> Result<(PathBuf, PathBuf), Error> {
    let put = |path: &str, text: &str| -> Result<PathBuf, Error> {
        let at = work.join(path);
        if let Some(parent) = at.parent() {
            fs::create_dir_all(parent).map_err(|e| cannot(parent, e))?;
        }
        fs::write(&at, text).map_err(|e| cannot(&at, e))?;
        Ok(at)
    };
    put("fanin_shim.h", SHIM)?;
    for header in KERNEL_HEADERS {
        put(&format!("include/{header}"), "#include \"fanin_shim.h\"\n")?;
    }
    for (header, text) in twins::HEADERS {
        put(&format!("twins/{header}"), text)?;
    }
    let glue = put("glue.c", &format!("#pragma GCC visibility push(default)\n{GLUE}"))?;
    let file = match registration {
        Some(registration) => {
            put("fanin_bpf.h", BPF)?;
            let places = bpf::HEADERS.iter().map(|header| format!("include/{header}"));
            // Found before one in the file's own folder.
            for place in places.chain(bpf::BESIDE.iter().map(|header| format!("source/{header}"))) {
                put(&place, "#include \"fanin_bpf.h\"\n")?;
            }
            put(&format!("source/{name}"), &format!("{source}{registration}"))?
        }
        None => put(&format!("source/{name}"), source)?,
    };
    Ok((file, glue))
}

/// The files of a rule as `make` reads it, without those in `work`.
fn named(rule: &str, work: &Path) -> Vec<PathBuf> {
    let text = rule.split_once(": ").map_or("", |(_, files)| files).replace("\\\n", " ").replace("\\ ", "\0");
    let files = text.split_whitespace().map(|file| PathBuf::from(file.replace('\0', " ")));
    files.filter(|file| !file.starts_with(work)).collect()
}

fn has_clang() -> bool {
    Command::new("clang").arg("--version").output().is_ok_and(|done| done.status.success())
}

fn version(compiler: &str, expanded: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    (expanded, SHIM, BPF, GLUE, FLAGS, compiler, env!("CARGO_PKG_VERSION")).hash(&mut hasher);
    let compiler_version = Command::new(compiler).arg("--version").output().map(|o| o.stdout).unwrap_or_default();
    compiler_version.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// A folder of its own for one compilation, gone afterwards.
struct Work(PathBuf);

impl Work {
    fn new(cache: &Path) -> std::io::Result<Work> {
        static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let count = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let path = cache.join(format!(".work-{}-{count}", std::process::id()));
        fs::create_dir_all(&path)?;
        Ok(Work(path))
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        // What cannot be removed only takes place in the cache.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The compiler's first error as a sentence.
fn explain(done: &Output, file: &Path) -> Error {
    let text = String::from_utf8_lossy(&done.stderr);
    let quoted = |message: &str| -> Option<String> {
        let rest = message.split(['\u{2018}', '\'', '`']).nth(1)?;
        Some(rest.split(['\u{2019}', '\'']).next()?.to_owned())
    };
    for line in text.lines() {
        let Some((place, message)) = line.split_once(" error: ").map(|(p, m)| (p.trim_end_matches(" fatal"), m)) else {
            if let Some(missing) = line.split_once("undefined reference to ").map(|(_, m)| m) {
                let helper = quoted(missing).unwrap_or_else(|| missing.to_owned());
                return match helper.as_str() {
                    "fanin_module_init" => Error::NotCongestionControl(
                        "it has no module_init(), which registers its tcp_congestion_ops; see kernel/cc/dctcp.c for a short one".to_owned(),
                    ),
                    _ => Error::NoHelper { line: 0, helper },
                };
            }
            continue;
        };
        let mut fields = place.trim_end_matches(':').rsplitn(3, ':').collect::<Vec<_>>();
        fields.reverse();
        let number: u32 = fields.get(1).and_then(|l| l.parse().ok()).unwrap_or(0);
        let own = fields.first().is_some_and(|f| Path::new(f) == file);
        let message = message.split(" [-W").next().unwrap_or(message);
        let name = quoted(message);
        return match name {
            Some(helper) if own && message.contains("implicit declaration of function") => {
                Error::NoHelper { line: number, helper }
            }
            Some(helper) if own && message.contains("undeclared function") => Error::NoHelper { line: number, helper },
            _ if own && message.contains("No such file") => {
                let header = name.unwrap_or_else(|| message.split(':').next().unwrap_or("").to_owned());
                Error::NoHeader { line: number, header }
            }
            _ => {
                let place = if own {
                    format!("line {number}")
                } else {
                    let file = fields.first().map(|f| {
                        Path::new(f).file_name().map_or((*f).to_owned(), |n| n.to_string_lossy().into_owned())
                    });
                    format!("{}:{number}", file.unwrap_or_default())
                };
                Error::Compiler { place, message: message.replace(['\u{2018}', '\u{2019}'], "`") }
            }
        };
    }
    // The assembler's, behind a line that names a file of the cache; or nothing, where the compiler was ended.
    let told = text.lines().find(|line| !line.trim().is_empty() && !line.ends_with("Assembler messages:"));
    let message =
        told.map_or("it failed and said nothing", |line| line.split_once(" Error: ").map_or(line, |(_, m)| m));
    Error::Compiler { place: "the file".to_owned(), message: message.to_owned() }
}
