//! Why a job that is not over cannot be claimed. The store keeps a number, so that an index can be over it.

use crate::sql::Value;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// It can be claimed.
    None,
    /// Its time has not come.
    Later,
    /// A person has paused or blocked its task.
    Task,
    /// A node has it without a permit: it waits for an answer, or lends its permit to a job it waits for.
    NoPermit,
    /// It waits for a login.
    Login,
    /// Its worker died several times: it is claimed when no other job runs.
    Alone,
    /// Tasks that its task depends on are not over.
    Dependencies,
}

impl Hold {
    const fn number(self) -> i64 {
        match self {
            Self::None => 0,
            Self::Later => 1,
            Self::Task => 2,
            Self::NoPermit => 3,
            Self::Login => 4,
            Self::Alone => 5,
            Self::Dependencies => 6,
        }
    }
}

impl From<Hold> for i64 {
    fn from(hold: Hold) -> Self {
        hold.number()
    }
}

impl From<Hold> for Value<'_> {
    fn from(hold: Hold) -> Self {
        Self::from(hold.number())
    }
}

/// The number of a hold, for the text of a statement.
macro_rules! hold {
    (None) => {
        "0"
    };
    (Later) => {
        "1"
    };
    (Task) => {
        "2"
    };
    (NoPermit) => {
        "3"
    };
    (Login) => {
        "4"
    };
    (Alone) => {
        "5"
    };
    (Dependencies) => {
        "6"
    };
}
pub(crate) use hold;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_and_values_hold_the_same_numbers() {
        for (text, hold) in [
            (hold!(None), Hold::None),
            (hold!(Later), Hold::Later),
            (hold!(Task), Hold::Task),
            (hold!(NoPermit), Hold::NoPermit),
            (hold!(Login), Hold::Login),
            (hold!(Alone), Hold::Alone),
            (hold!(Dependencies), Hold::Dependencies),
        ] {
            assert_eq!(text, hold.number().to_string(), "{hold:?}");
        }
    }
}
