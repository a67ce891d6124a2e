//! No picture of the memory is left behind: prompts and keys stand in it.

/// Forbids core files, and that other programs of the same user read the memory. A failure is told and not fatal.
pub fn forbid() {
    use rustix::process::{Resource, Rlimit, setrlimit};
    if let Err(error) = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) }) {
        tracing::warn!(%error, "a crash may leave a core file, which holds prompts and keys");
    }
    hide();
}

/// Forbids only that other programs of the same user read the memory: programs that this one starts are as they were.
pub fn hide() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable) {
        tracing::warn!(%error, "other programs of this user can read the memory");
    }
}
