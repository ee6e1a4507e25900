//! Exit codes: one meaning each, for every command.

use std::process::ExitCode;

/// How a run ended, as the code that the shell sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Everything asked for was done.
    Done = 0,
    /// A failure of our own or of the system, such as a disk that is full.
    Internal = 1,
    /// A flag, a value or a combination that cannot be.
    Usage = 2,
    /// No such model, file or directory.
    NotFound = 3,
    /// A known model whose files are not on this machine, and may not or cannot be fetched.
    Offline = 4,
    /// The network or a hub failed.
    Network = 5,
    /// A hub does not let us in; trying again cannot help.
    Gated = 6,
    /// A device is missing, was lost, or ran out of memory.
    Device = 7,
    /// A digest or a shape is not what it should be.
    CheckFailed = 8,
    /// Of several inputs some or all failed; the rest are done.
    Partial = 9,
    /// The only input cannot be read as what it should be.
    BadInput = 11,
    /// A model that lacks a part, or is of a kind that is not supported.
    IncompleteModel = 12,
    /// Another process held a lock for too long.
    Locked = 13,
}

impl Exit {
    /// The name that error objects carry beside the code.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Internal => "internal",
            Self::Usage => "usage",
            Self::NotFound => "not_found",
            Self::Offline => "offline",
            Self::Network => "network",
            Self::Gated => "gated",
            Self::Device => "device",
            Self::CheckFailed => "check_failed",
            Self::Partial => "partial",
            Self::BadInput => "bad_input",
            Self::IncompleteModel => "incomplete_model",
            Self::Locked => "locked",
        }
    }

    /// The number itself.
    pub fn code(self) -> u8 {
        self as u8
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
