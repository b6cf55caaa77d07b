//! How many unfinished tasks each principal may have. One client in a loop must not fill the store.
//!
//! Kept as an upper bound: every task that is handed in adds one, none that ends takes one away, and only a bound that
//! reaches the limit has the store count. So the limit costs next to nothing until a principal is near it. Each node
//! keeps its own bound.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use matsu_core::limits::{CURSORS_MAX, TASKS_PER_PRINCIPAL_MAX};
use matsu_core::ports::store::{CountTasks, Store};
use matsu_core::principal::Principal;

use super::TaskError;

#[derive(Debug, Default)]
pub struct OpenTasks {
    at_most: Mutex<HashMap<Principal, u32>>,
}

impl OpenTasks {
    /// Lets one more in.
    ///
    /// # Errors
    /// `LimitExceeded` when the principal has as many as it may; as the store's.
    pub async fn admit(&self, store: &dyn Store, principal: &Principal) -> Result<(), TaskError> {
        if self.has_capacity(principal) {
            return Ok(());
        }
        let count = store.run(CountTasks { owner: principal.clone(), max: TASKS_PER_PRINCIPAL_MAX }).await?;
        self.counted(principal, count)
    }

    /// The store has counted: that many, and one more if the limit allows it.
    fn counted(&self, principal: &Principal, count: u32) -> Result<(), TaskError> {
        if count >= TASKS_PER_PRINCIPAL_MAX {
            let message = format!(
                "at most {TASKS_PER_PRINCIPAL_MAX} tasks can be unfinished at once; collect or cancel some of them"
            );
            return Err(TaskError::LimitExceeded(message));
        }
        let mut bounds = self.at_most.lock().unwrap_or_else(PoisonError::into_inner);
        // Sessions come and go; what is forgotten is counted again.
        if bounds.len() >= CURSORS_MAX {
            bounds.clear();
        }
        bounds.insert(principal.clone(), count + 1);
        Ok(())
    }

    /// Counts one more if the bound allows it.
    fn has_capacity(&self, principal: &Principal) -> bool {
        let mut bounds = self.at_most.lock().unwrap_or_else(PoisonError::into_inner);
        match bounds.get_mut(principal) {
            Some(bound) if *bound < TASKS_PER_PRINCIPAL_MAX => {
                *bound += 1;
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_store_counts_only_near_the_limit() {
        let (open, me) = (OpenTasks::default(), Principal::local_user());
        assert!(!open.has_capacity(&me), "nothing is known yet");
        open.counted(&me, TASKS_PER_PRINCIPAL_MAX - 3).unwrap();
        assert!(open.has_capacity(&me) && open.has_capacity(&me));
        assert!(!open.has_capacity(&me), "the bound is reached");
        let refused = open.counted(&me, TASKS_PER_PRINCIPAL_MAX).unwrap_err();
        assert!(matches!(refused, TaskError::LimitExceeded(_)), "{refused}");
        open.counted(&me, 5).unwrap();
        assert!(open.has_capacity(&me), "most had ended");
    }
}
