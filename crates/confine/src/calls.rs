//! The filter of system calls. Those that Landlock has no say in are refused by name; those that no version of this file knows are not there.

use crate::Error;
use seccompiler::SeccompCmpArgLen::{Dword, Qword};
use seccompiler::SeccompCmpOp::{Eq, MaskedEq, Ne};
use seccompiler::{BpfProgram, SeccompAction, SeccompCondition, SeccompFilter, SeccompRule};
use std::collections::BTreeMap;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// The last system call that the kernel's table had when this was written (`mseal`).
const LAST: i64 = 462;

/// What a compiler does, or this process before it gives more rights away, and code does not.
const PROGRAMS: &[i64] = &[
    // Memory that no limit counts.
    libc::SYS_memfd_create,
    libc::SYS_memfd_secret,
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    // It gives its capabilities away then, too.
    libc::SYS_capset,
    // A process that will give more rights away sets limits then.
    libc::SYS_setrlimit,
];

/// What no library does on its own: code that asks for it is ended (SIGSYS), since one that goes on hides it from the user.
const ATTACKS: &[i64] = &[
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_tkill,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_pidfd_getfd,
    libc::SYS_pidfd_send_signal,
];

/// No part of running code on numbers.
const REFUSED: &[i64] = &[
    // Processes.
    libc::SYS_process_madvise,
    libc::SYS_kcmp,
    libc::SYS_pidfd_open,
    libc::SYS_setpriority,
    libc::SYS_setsid,
    libc::SYS_setpgid,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    // Other machines, and other programs of this one.
    libc::SYS_socket,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_socketpair,
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_msgget,
    libc::SYS_msgctl,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_semget,
    libc::SYS_semctl,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    // Files: what Landlock does not ask about.
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    libc::SYS_utimensat,
    libc::SYS_fanotify_init,
    libc::SYS_inotify_init1,
    libc::SYS_open_by_handle_at,
    libc::SYS_flock,
    // The system.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_setns,
    libc::SYS_unshare,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_reboot,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_vhangup,
    libc::SYS_syslog,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_setuid,
    libc::SYS_setgid,
    libc::SYS_setreuid,
    libc::SYS_setregid,
    libc::SYS_setresuid,
    libc::SYS_setresgid,
    libc::SYS_setgroups,
    libc::SYS_sched_setscheduler,
    libc::SYS_sched_setattr,
    libc::SYS_sched_setparam,
    libc::SYS_ioprio_set,
];

/// Older forms of [`PROGRAMS`], which newer architectures never had.
#[cfg(target_arch = "x86_64")]
const PROGRAMS_OLD: &[i64] = &[libc::SYS_fork, libc::SYS_vfork, libc::SYS_chmod];
#[cfg(not(target_arch = "x86_64"))]
const PROGRAMS_OLD: &[i64] = &[];

/// Older forms of [`REFUSED`].
#[cfg(target_arch = "x86_64")]
const REFUSED_OLD: &[i64] = &[
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_futimesat,
    libc::SYS_inotify_init,
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_OLD: &[i64] = &[];

/// Refused too where there is no Landlock.
const CHANGES: &[i64] = &[
    libc::SYS_mkdirat,
    libc::SYS_mknodat,
    libc::SYS_unlinkat,
    libc::SYS_renameat2,
    libc::SYS_linkat,
    libc::SYS_symlinkat,
    libc::SYS_truncate,
    libc::SYS_fallocate,
];
#[cfg(target_arch = "x86_64")]
const CHANGES_OLD: &[i64] = &[
    libc::SYS_mkdir,
    libc::SYS_rmdir,
    libc::SYS_mknod,
    libc::SYS_unlink,
    libc::SYS_rename,
    libc::SYS_renameat,
    libc::SYS_link,
    libc::SYS_symlink,
    libc::SYS_creat,
];
#[cfg(not(target_arch = "x86_64"))]
const CHANGES_OLD: &[i64] = &[];

/// Requests of `fcntl(2)` that libc does not name everywhere (`asm-generic/fcntl.h`).
const F_SETSIG: i32 = 10;
const F_SETOWN_EX: i32 = 15;

/// What C libraries and Python ask of any descriptor; every other request, such as typing into the terminal (TIOCSTI), is refused.
const REQUESTS: &[u64] = &[libc::TCGETS, libc::FIONREAD, libc::FIONBIO, libc::FIOCLEX, libc::FIONCLEX];

/// As if an older kernel ran: the C library then takes the form that a filter can look into (`clone` for `clone3`).
const ABSENT: &[i64] = &[
    libc::SYS_clone3,
    libc::SYS_openat2,
    libc::SYS_fchmodat2,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
];

/// Installs the filter for this thread and what it starts; with `files`, nothing can be opened for writing, and with `programs`, some can be started.
pub fn restrict(files: bool, programs: bool) -> Result<(), Error> {
    let failed = |e: &dyn std::fmt::Display| Error(e.to_string());
    let known = (0..=LAST).filter(|call| !ABSENT.contains(call)).map(|call| (call, Vec::new())).collect();
    let absent = SeccompAction::Errno(libc::ENOSYS as u32);
    let there = filter(known, absent, SeccompAction::Allow).map_err(|e| failed(&e))?;
    let refused = refused(files, programs).map_err(|e| failed(&e))?;
    let refused = filter(refused, SeccompAction::Allow, SeccompAction::Errno(libc::EPERM as u32));
    // A compiler that meddles with others is refused, and goes on.
    let end = if programs { SeccompAction::Errno(libc::EPERM as u32) } else { SeccompAction::KillProcess };
    let attacks = filter(attacks(programs).map_err(|e| failed(&e))?, SeccompAction::Allow, end);
    for program in [&there, &refused.map_err(|e| failed(&e))?, &attacks.map_err(|e| failed(&e))?] {
        seccompiler::apply_filter(program).map_err(|e| failed(&e))?;
    }
    Ok(())
}

/// Answers calls in `rules` one way and all others another.
fn filter(rules: Rules, others: SeccompAction, named: SeccompAction) -> Result<BpfProgram, seccompiler::BackendError> {
    SeccompFilter::new(rules, others, named, std::env::consts::ARCH.try_into()?)?.try_into()
}

fn always(calls: &[i64]) -> Rules {
    calls.iter().map(|&call| (call, Vec::new())).collect()
}

fn when(conditions: Vec<SeccompCondition>) -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    SeccompRule::new(conditions).map(|rule| vec![rule])
}

/// Signals to other processes, and their memory. With `group`, its process group may be ended: whoever starts a compiler has to end it.
fn attacks(group: bool) -> Result<Rules, seccompiler::BackendError> {
    let mut rules = always(ATTACKS);
    let own = u64::from(std::process::id());
    for signal in [libc::SYS_kill, libc::SYS_tgkill] {
        let mut others = vec![SeccompCondition::new(0, Dword, Ne, own)?];
        if group && signal == libc::SYS_kill {
            others.push(SeccompCondition::new(0, Dword, Ne, 0)?);
        }
        rules.insert(signal, when(others)?);
    }
    Ok(rules)
}

fn refused(files: bool, programs: bool) -> Result<Rules, seccompiler::BackendError> {
    let mut rules = always(REFUSED);
    rules.extend(always(REFUSED_OLD));
    if !programs {
        rules.extend(always(PROGRAMS));
        rules.extend(always(PROGRAMS_OLD));
        let thread = libc::CLONE_THREAD as u64;
        rules.insert(libc::SYS_clone, when(vec![SeccompCondition::new(0, Dword, MaskedEq(thread), 0)?])?);
        // Which processors a thread may use is its own affair, by zero.
        rules.insert(libc::SYS_sched_setaffinity, when(vec![SeccompCondition::new(0, Dword, Ne, 0)?])?);
        // Limits may be read, not set.
        rules.insert(libc::SYS_prlimit64, when(vec![SeccompCondition::new(2, Qword, Ne, 0)?])?);
    }
    // The buffer of a pipe is memory that no limit counts either; as made, it is 64 KB.
    // And who is to get signals of a descriptor may be anybody.
    let wrong = [libc::F_SETPIPE_SZ, libc::F_SETOWN, F_SETOWN_EX, F_SETSIG].map(|command| command as u64);
    let wrong = wrong.map(|command| SeccompRule::new(vec![SeccompCondition::new(1, Dword, Eq, command)?]));
    rules.insert(libc::SYS_fcntl, wrong.into_iter().collect::<Result<_, _>>()?);
    let others = REQUESTS.iter().map(|&request| SeccompCondition::new(1, Dword, Ne, request));
    rules.insert(libc::SYS_ioctl, when(others.collect::<Result<_, _>>()?)?);
    if files {
        rules.extend(always(CHANGES));
        rules.extend(always(CHANGES_OLD));
        let mut opens = vec![(libc::SYS_openat, 2)];
        #[cfg(target_arch = "x86_64")]
        opens.push((libc::SYS_open, 1));
        for (call, flags) in opens {
            let writes = [libc::O_WRONLY, libc::O_RDWR].map(|mode| {
                SeccompRule::new(vec![SeccompCondition::new(
                    flags,
                    Dword,
                    MaskedEq(libc::O_ACCMODE as u64),
                    mode as u64,
                )?])
            });
            rules.insert(call, writes.into_iter().collect::<Result<_, _>>()?);
        }
    }
    Ok(rules)
}
