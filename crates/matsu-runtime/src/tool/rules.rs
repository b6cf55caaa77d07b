//! What a tool requires of its caller.

use matsu_core::session::Purpose;

/// How a tool stands to sessions. The dispatch holds every tool to its rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    pub session: SessionNeed,
    /// Only for sessions of this purpose.
    pub purpose: Option<Purpose>,
    /// Runs although an interrupt is unread.
    pub exempt: bool,
    /// Answers although the session has ended, so that a repeated call is harmless.
    pub after_end: bool,
    /// Its own answer says that the session has ended, so a wait of it is not cut short by the end.
    pub tells_end: bool,
    /// A call of it shows that earlier notifications have arrived.
    pub acknowledges: bool,
    /// An argument of earlier versions, and the tool that takes it now.
    pub moved: Option<(&'static str, &'static str)>,
    /// A person's judgement: a session may call it only if it was granted by name.
    pub person_only: bool,
    /// Its effect holds for every user of the store.
    pub admin_only: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionNeed {
    /// With or without one.
    Optional,
    Required,
    /// One that the caller owns can also be named by its `session_id`.
    RequiredOrNamed,
    /// A session that comes along is not looked at.
    Ignored,
}

impl Rules {
    /// Tools for every caller.
    pub const ORDINARY: Self = Self {
        session: SessionNeed::Optional,
        purpose: None,
        exempt: false,
        after_end: false,
        tells_end: false,
        acknowledges: true,
        moved: None,
        person_only: false,
        admin_only: false,
    };
    pub const PERSON: Self = Self { person_only: true, ..Self::ORDINARY };
    pub const ADMIN: Self = Self { admin_only: true, ..Self::PERSON };
    pub const SESSION: Self = Self { session: SessionNeed::Required, ..Self::ORDINARY };
    pub const NAMED_SESSION: Self = Self { session: SessionNeed::RequiredOrNamed, tells_end: true, ..Self::ORDINARY };
    pub const READS_NOTIFICATIONS: Self = Self { exempt: true, acknowledges: false, ..Self::SESSION };
    pub const ENDS_SESSION: Self = Self { exempt: true, after_end: true, ..Self::SESSION };
    pub const ENDS_TASK: Self = Self { purpose: Some(Purpose::Task), ..Self::ENDS_SESSION };
    pub const WITHOUT_SESSION: Self = Self { session: SessionNeed::Ignored, ..Self::ORDINARY };

    /// Whether the tool itself answers a session that ends while it is called.
    #[must_use]
    pub const fn answers_the_end(&self) -> bool {
        self.after_end || self.tells_end
    }
}
