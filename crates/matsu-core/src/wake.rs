//! Wake-ups inside one process. A wake-up is a hint: losing or doubling one must be harmless, so it carries nothing; a
//! subscriber that is woken reads the store.
//!
//! Subscribe first, then read, then sleep. A publication between the subscription and the sleep leaves a
//! permit behind, and the sleep returns at once.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::change::Topic;

/// Topic to sleepers. Holds a sleeper only while its subscription lives.
#[derive(Debug)]
pub struct Hub {
    topics: Mutex<Topics>,
    everything: Topic,
}

impl Default for Hub {
    fn default() -> Self {
        Self { topics: Mutex::default(), everything: Topic::everything() }
    }
}

#[derive(Debug, Default)]
struct Topics {
    sleepers: HashMap<Topic, Listeners>,
    next_id: u64,
    published: u64,
}

#[derive(Debug)]
struct Listeners {
    /// The number of the topic's last publication, or of the last one of all when its first listener came.
    published: u64,
    /// By subscription: the oldest is woken first.
    notifies: BTreeMap<u64, Arc<Notify>>,
}

impl Hub {
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Counts from the moment of the call, so subscribe first and read afterwards.
    #[must_use]
    pub fn subscribe(self: &Arc<Self>, topics: &[Topic]) -> Subscription {
        let notify = Arc::new(Notify::new());
        let mut inner = self.lock();
        let id = inner.next_id;
        inner.next_id += 1;
        let published = inner.published;
        for topic in topics {
            let listeners = inner.sleepers.entry(topic.clone());
            let listeners = listeners.or_insert_with(|| Listeners { published, notifies: BTreeMap::new() });
            listeners.notifies.insert(id, Arc::clone(&notify));
        }
        drop(inner);
        Subscription { hub: Arc::clone(self), topics: topics.into(), id, notify }
    }

    /// Wakes the subscribers of any of these topics, and those of everything.
    pub fn publish<'a>(&self, topics: impl IntoIterator<Item = &'a Topic>) {
        let mut inner = self.lock();
        inner.published += 1;
        let published = inner.published;
        for topic in topics {
            if let Some(listeners) = inner.sleepers.get_mut(topic) {
                listeners.wake(published);
            }
        }
        if let Some(listeners) = inner.sleepers.get_mut(&self.everything) {
            listeners.wake(published);
        }
    }

    /// Wakes every subscriber: something was missed, and it is not known what.
    pub fn publish_all(&self) {
        let mut inner = self.lock();
        inner.published += 1;
        let published = inner.published;
        let mut all = BTreeMap::new();
        for listeners in inner.sleepers.values_mut() {
            listeners.published = published;
            all.extend(&listeners.notifies);
        }
        // In the order they came, as in `publish`: a simulation must be able to repeat itself.
        for notify in all.into_values() {
            notify.notify_one();
        }
    }

    /// Grows with every publication. What was read after this number was taken is at least as new as it.
    #[must_use]
    pub fn published(&self) -> u64 {
        self.lock().published
    }

    /// The number of the last publication on `topic`, for the present subscribers of it: what was read after
    /// [`Hub::published`] had reached it is fresh for all of them. Without a subscriber: the last publication of all.
    #[must_use]
    pub fn published_on(&self, topic: &Topic) -> u64 {
        let inner = self.lock();
        inner.sleepers.get(topic).map_or(inner.published, |listeners| listeners.published)
    }

    /// Open subscriptions, counted once per topic.
    #[must_use]
    pub fn sleepers(&self) -> usize {
        self.lock().sleepers.values().map(|listeners| listeners.notifies.len()).sum()
    }

    fn lock(&self) -> MutexGuard<'_, Topics> {
        self.topics.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Listeners {
    fn wake(&mut self, published: u64) {
        self.published = published;
        for notify in self.notifies.values() {
            // `notify_one` and not `notify_waiters`: it leaves a permit for a sleeper that is still reading.
            notify.notify_one();
        }
    }
}

/// A place in the line. Dropping it leaves nothing behind.
#[derive(Debug)]
pub struct Subscription {
    hub: Arc<Hub>,
    topics: Box<[Topic]>,
    id: u64,
    notify: Arc<Notify>,
}

impl Subscription {
    /// Returns when something was published since the subscription or since the last return.
    pub async fn woken(&self) {
        self.notify.notified().await;
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut inner = self.hub.lock();
        for topic in &self.topics {
            if let Some(listeners) = inner.sleepers.get_mut(topic) {
                listeners.notifies.remove(&self.id);
                if listeners.notifies.is_empty() {
                    inner.sleepers.remove(topic);
                }
            }
        }
    }
}

#[cfg(test)]
mod model;

#[cfg(test)]
mod tests {
    use super::*;

    fn topic(name: &str) -> Topic {
        Topic::from_text(name)
    }

    #[tokio::test]
    async fn a_publication_between_subscribe_and_sleep_is_not_lost() {
        let hub = Hub::new();
        let subscription = hub.subscribe(&[topic("a"), topic("b")]);
        hub.publish([&topic("b")]);
        subscription.woken().await;
    }

    #[tokio::test(start_paused = true)]
    async fn other_topics_do_not_wake() {
        let hub = Hub::new();
        let subscription = hub.subscribe(&[topic("a")]);
        hub.publish([&topic("b")]);
        let clock = crate::clock::Clock::system();
        assert!(clock.within(std::time::Duration::from_secs(60), subscription.woken()).await.is_none());
    }

    #[tokio::test]
    async fn a_subscriber_to_everything_is_woken_by_any_topic() {
        let hub = Hub::new();
        let subscription = hub.subscribe(&[Topic::everything()]);
        hub.publish([&topic("b")]);
        subscription.woken().await;
    }

    #[test]
    fn a_topic_is_as_new_as_its_own_last_publication() {
        let hub = Hub::new();
        hub.publish([&topic("a")]);
        let _subscription = hub.subscribe(&[topic("a")]);
        assert_eq!(hub.published_on(&topic("a")), 1, "what was published before may not have been read");
        hub.publish([&topic("b")]);
        assert_eq!(hub.published_on(&topic("a")), 1, "other topics do not age it");
        hub.publish([&topic("a")]);
        assert_eq!(hub.published_on(&topic("a")), 3);
        hub.publish_all();
        assert_eq!(hub.published_on(&topic("a")), 4);
        assert_eq!(hub.published_on(&topic("unheard")), 4);
    }

    #[tokio::test]
    async fn everyone_wakes_and_nothing_is_left_behind() {
        let hub = Hub::new();
        let subscriptions: Vec<_> = (0..1_000).map(|_| hub.subscribe(&[topic("a")])).collect();
        assert_eq!(hub.sleepers(), 1_000);
        hub.publish([&topic("a")]);
        for subscription in &subscriptions {
            subscription.woken().await;
        }
        drop(subscriptions);
        assert_eq!(hub.sleepers(), 0);
    }
}
