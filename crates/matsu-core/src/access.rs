//! What a caller may do: its role, the folders it may work in, the tools it is offered.

use std::path::PathBuf;
use std::sync::Arc;

use crate::principal::Principal;
use crate::words::words;

words! {
    /// What a token allows, least first.
    pub enum Role {
        /// Reads what is its user's own.
        Viewer = "viewer",
        /// Its user's own tasks, chats and sessions; agents and folders only where an admin allowed it.
        Member = "member",
        /// Everything, for every user.
        Admin = "admin",
    }
}

/// Where agents may work and which folders research may read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Folders {
    /// What the configuration and the client's own project allow.
    Configured,
    /// These, and what lies below them.
    Only(Vec<PathBuf>),
}

/// The rights of one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rights {
    pub role: Role,
    pub folders: Folders,
    /// The only tools it is offered, as `--tools` names them. Absent: no limit.
    pub tools: Option<Arc<str>>,
}

impl Rights {
    /// The local owner's.
    #[must_use]
    pub fn owner() -> Self {
        Self { role: Role::Admin, folders: Folders::Configured, tools: None }
    }

    /// What a user has in a role. Only an admin is not bound to the folders that were given.
    #[must_use]
    pub fn new(role: Role, roots: Vec<PathBuf>, tools: Option<Arc<str>>) -> Self {
        let folders = if role == Role::Admin { Folders::Configured } else { Folders::Only(roots) };
        Self { role, folders, tools }
    }

    /// The rights of a principal of whom nothing more is known: the local owner has all, any other user has no folder.
    #[must_use]
    pub fn presumed(principal: &Principal) -> Self {
        if *principal == Principal::local_user() { Self::owner() } else { Self::new(Role::Member, Vec::new(), None) }
    }

    #[must_use]
    pub fn is_admin(&self) -> bool {
        self.role == Role::Admin
    }

    #[must_use]
    pub fn may_write(&self) -> bool {
        self.role >= Role::Member
    }
}

/// The principal that reads a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Viewer {
    pub principal: Principal,
    /// Whether it also sees what belongs to the installation: chats with named agents.
    pub is_admin: bool,
}

/// A user. Tokens can be issued to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    pub principal: Principal,
    /// The folders that an admin gave.
    pub roots: Vec<PathBuf>,
    pub created_at: crate::clock::Timestamp,
    /// Position in the list of all users.
    pub seq: i64,
}

/// What went with a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemovedUser {
    pub tokens: u64,
    pub sessions: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_are_ordered_by_what_they_allow() {
        assert!(Role::Viewer < Role::Member && Role::Member < Role::Admin);
        let rights = |role| Rights::new(role, Vec::new(), None);
        assert!(!rights(Role::Viewer).may_write() && rights(Role::Member).may_write());
        assert!(rights(Role::Admin).is_admin() && !rights(Role::Member).is_admin());
    }

    #[test]
    fn given_folders_bound_a_member_and_not_an_admin() {
        let given = vec![PathBuf::from("/srv/given")];
        assert_eq!(Rights::new(Role::Admin, given.clone(), None).folders, Folders::Configured);
        assert_eq!(Rights::new(Role::Member, given.clone(), None).folders, Folders::Only(given));
    }

    #[test]
    fn only_the_local_owner_is_presumed_to_have_everything() {
        assert_eq!(Rights::presumed(&Principal::local_user()), Rights::owner());
        let other = Rights::presumed(&Principal::user("alice"));
        assert_eq!((other.role, other.folders), (Role::Member, Folders::Only(Vec::new())));
    }
}
