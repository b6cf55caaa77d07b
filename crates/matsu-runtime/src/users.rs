//! What a user may do, wherever no token says it: sessions and background work.

use matsu_core::access::{Rights, Role};
use matsu_core::ports::store::StoreError;
use matsu_core::principal::Principal;

use crate::runtime::Runtime;

impl Runtime {
    /// The rights of what works for this user: the local owner has all, another user those of a member in the folders
    /// it was given.
    ///
    /// # Errors
    /// As the store's.
    pub async fn rights_of(&self, user: &Principal) -> Result<Rights, StoreError> {
        if *user == Principal::local_user() {
            return Ok(Rights::owner());
        }
        let known = self.store().user(user).await?;
        Ok(Rights::new(Role::Member, known.map(|user| user.roots).unwrap_or_default(), None))
    }
}
