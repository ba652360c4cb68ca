//! Why a command ended without success, and the exit code that says so.
//!
//! | code | meaning |
//! |---|---|
//! | 0 | done |
//! | 1 | a plain "no": no such key, damage found, a demonstration that did not verify |
//! | 2 | wrong usage, or input that is not in its format |
//! | 3 | the database or the operating system refused |

use std::fmt;
use std::io;

/// A command's outcome.
pub type Outcome<T = ()> = Result<T, Failure>;

/// Why a command ended without success.
#[derive(Debug)]
pub enum Failure {
    /// The answer is no, and it was already said.
    No,
    /// The usage or the input is wrong.
    Input(String),
    /// The database or the operating system refused.
    Failed(String),
    /// Whoever read standard output left: not an error.
    BrokenPipe,
}

impl Failure {
    /// A failed system operation on something a person can name.
    pub fn io(attempted: impl fmt::Display, error: &io::Error) -> Failure {
        Failure::Failed(format!("could not {attempted}: {error}"))
    }

    /// The exit code.
    pub fn code(&self) -> u8 {
        match self {
            Failure::BrokenPipe => 0,
            Failure::No => 1,
            Failure::Input(_) => 2,
            Failure::Failed(_) => 3,
        }
    }

    /// What to tell the user, if anything is left to say.
    pub fn message(&self) -> Option<&str> {
        match self {
            Failure::Input(message) | Failure::Failed(message) => Some(message),
            Failure::No | Failure::BrokenPipe => None,
        }
    }
}

impl From<halocline::Error> for Failure {
    fn from(error: halocline::Error) -> Failure {
        match error.kind() {
            halocline::ErrorKind::InvalidArgument => Failure::Input(error.to_string()),
            halocline::ErrorKind::Locked => {
                Failure::Failed(format!("{error} (close the program that has it open, then try again)"))
            }
            halocline::ErrorKind::Corruption => {
                Failure::Failed(format!("{error} (`halocline check` lists all damage)"))
            }
            _ => Failure::Failed(error.to_string()),
        }
    }
}

/// For writes to standard output, which are most of what a command does with `io` itself.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::BrokenPipe,
            _ => Failure::io("write the output", &error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_that_left_is_no_error() {
        let failure = Failure::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert_eq!((failure.code(), failure.message()), (0, None));
    }

    #[test]
    fn each_reason_has_its_code() {
        assert_eq!(Failure::No.code(), 1);
        assert_eq!(Failure::Input(String::new()).code(), 2);
        assert_eq!(Failure::from(io::Error::from(io::ErrorKind::StorageFull)).code(), 3);
    }
}
