//! A process that stops before and after each of its system calls.

use std::collections::HashMap;
use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr::null_mut;

use libc::{c_int, c_long, c_void, pid_t, ptrace_syscall_info};

/// A system call that returned.
pub(crate) struct Returned {
    /// The thread that made it.
    pub(crate) thread: pid_t,
    pub(crate) number: c_long,
    pub(crate) arguments: [u64; 6],
    /// What it returned; negative: an error.
    pub(crate) value: i64,
}

/// Runs `command`, and calls `watch` after each system call of its threads, while the thread stands still. Gives the exit
/// status of the process, or the number of the signal that ended it, negated.
pub(crate) fn run(command: &mut Command, watch: &mut dyn FnMut(&Returned)) -> io::Result<i32> {
    // SAFETY: between fork and exec, this makes one system call and allocates nothing.
    unsafe {
        command.pre_exec(|| {
            checked(libc::ptrace(libc::PTRACE_TRACEME, 0, null_mut::<c_void>(), null_mut::<c_void>()))
        });
    }
    let child = command.spawn()?;
    let process = pid_t::try_from(child.id()).expect("a process id");
    let (stopped, _) = wait(process)?;
    assert_eq!(stopped, process);
    let options = libc::PTRACE_O_TRACESYSGOOD | libc::PTRACE_O_TRACECLONE | libc::PTRACE_O_EXITKILL;
    request(libc::PTRACE_SETOPTIONS, process, options as usize)?;
    go_on(process, 0)?;
    let mut begun: HashMap<pid_t, (c_long, [u64; 6])> = HashMap::new();
    let mut known = vec![process];
    loop {
        let (thread, status) = wait(-1)?;
        if libc::WIFEXITED(status) || libc::WIFSIGNALED(status) {
            if thread == process {
                let ended = libc::WIFEXITED(status);
                return Ok(if ended { libc::WEXITSTATUS(status) } else { -libc::WTERMSIG(status) });
            }
            continue;
        }
        let signal = libc::WSTOPSIG(status);
        let is_new = !known.contains(&thread);
        if is_new {
            known.push(thread);
        }
        let deliver = if signal == libc::SIGTRAP | 0x80 {
            at_call(thread, &mut begun, watch)?;
            0
        } else if signal == libc::SIGTRAP || (is_new && signal == libc::SIGSTOP) {
            0
        } else {
            signal
        };
        go_on(thread, deliver)?;
    }
}

fn at_call(
    thread: pid_t,
    begun: &mut HashMap<pid_t, (c_long, [u64; 6])>,
    watch: &mut dyn FnMut(&Returned),
) -> io::Result<()> {
    let mut info = MaybeUninit::<ptrace_syscall_info>::zeroed();
    // SAFETY: the kernel writes at most as many bytes as it is told; zeros are a value of the type.
    let info = unsafe {
        let size = size_of::<ptrace_syscall_info>();
        let outcome = libc::ptrace(libc::PTRACE_GET_SYSCALL_INFO, thread, size, info.as_mut_ptr());
        checked(outcome)?;
        info.assume_init()
    };
    // SAFETY: `op` says which member of the union the kernel wrote.
    unsafe {
        match info.op {
            libc::PTRACE_SYSCALL_INFO_ENTRY => {
                let number = c_long::try_from(info.u.entry.nr).expect("a small number");
                begun.insert(thread, (number, info.u.entry.args));
            }
            libc::PTRACE_SYSCALL_INFO_EXIT => {
                if let Some((number, arguments)) = begun.remove(&thread) {
                    watch(&Returned { thread, number, arguments, value: info.u.exit.sval });
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Waits for a process that this thread started. Those of other threads are left to them.
fn wait(process: pid_t) -> io::Result<(pid_t, c_int)> {
    let mut status = 0;
    // SAFETY: `status` is writable.
    let thread = unsafe { libc::waitpid(process, &raw mut status, libc::__WALL | libc::__WNOTHREAD) };
    checked(thread.into()).map(|()| (thread, status))
}

fn go_on(thread: pid_t, signal: c_int) -> io::Result<()> {
    match request(libc::PTRACE_SYSCALL, thread, signal as usize) {
        // It was ended meanwhile, and will be reported.
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(()),
        outcome => outcome,
    }
}

fn request(request: libc::c_uint, thread: pid_t, data: usize) -> io::Result<()> {
    // SAFETY: none of the requests reads or writes memory of this process.
    checked(unsafe { libc::ptrace(request, thread, null_mut::<c_void>(), data) })
}

fn checked(outcome: c_long) -> io::Result<()> {
    if outcome == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
