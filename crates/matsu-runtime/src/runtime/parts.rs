//! One value of each type that asks for one. So a module keeps its own state, and what holds it knows no module.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

#[derive(Default)]
pub struct Parts {
    by_type: RwLock<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>,
}

impl Parts {
    /// The value of this type; made when it is first asked for.
    pub fn get<T: Default + Send + Sync + 'static>(&self) -> Arc<T> {
        let known = self.by_type.read().unwrap_or_else(PoisonError::into_inner).get(&TypeId::of::<T>()).cloned();
        let part = known.unwrap_or_else(|| {
            let mut by_type = self.by_type.write().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(by_type.entry(TypeId::of::<T>()).or_insert_with(|| Arc::new(T::default())))
        });
        // Values are stored under their own type only.
        part.downcast().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

    use super::*;

    #[test]
    fn each_type_has_one_value() {
        let parts = Parts::default();
        parts.get::<AtomicU32>().store(7, Ordering::SeqCst);
        assert_eq!(parts.get::<AtomicU32>().load(Ordering::SeqCst), 7);
        assert_eq!(parts.get::<AtomicU64>().load(Ordering::SeqCst), 0);
    }
}
