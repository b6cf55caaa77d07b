//! Who may do what: users and their rights, tokens, and which tasks a principal sees.

mod tokens;
mod visible_tasks;

use std::path::PathBuf;

use matsu_core::access::{RemovedUser, Rights, Role, User};
use matsu_core::page::{Page, PageRequest};
use matsu_core::ports::store::{ListUsers, PutUser, ReadUser, RemoveUser, StoreError};
use matsu_core::principal::Principal;

use crate::runtime::service;

pub use tokens::{Found, TokenWish, Tokens};

service! {
    /// What principals may see and do.
    Access
}

impl Access<'_> {
    /// Users beside the local owner, oldest first.
    ///
    /// # Errors
    /// As the store's.
    pub async fn users(self, page: &PageRequest) -> Result<Page<User>, StoreError> {
        self.runtime.store().run(ListUsers(page.clone())).await
    }

    /// Adds a user, or gives one other folders.
    ///
    /// # Errors
    /// As the store's.
    pub async fn put_user(self, user: &Principal, roots: &[PathBuf]) -> Result<User, StoreError> {
        self.runtime
            .store()
            .run(PutUser { user: user.clone(), roots: roots.to_vec(), now: self.runtime.clock().now() })
            .await
    }

    /// Revokes the tokens of a user and ends its sessions.
    ///
    /// # Errors
    /// As the store's.
    pub async fn remove_user(self, user: &Principal) -> Result<RemovedUser, StoreError> {
        self.runtime.store().run(RemoveUser { user: user.clone(), now: self.runtime.clock().now() }).await
    }

    /// The rights of what works for this user: the local owner has all, another user those of a member in the folders
    /// it was given.
    ///
    /// # Errors
    /// As the store's.
    pub async fn rights_of(self, user: &Principal) -> Result<Rights, StoreError> {
        if *user == Principal::local_user() {
            return Ok(Rights::owner());
        }
        let known = self.runtime.store().run(ReadUser(user.clone())).await?;
        Ok(Rights::new(Role::Member, known.map(|user| user.roots).unwrap_or_default(), None))
    }
}
