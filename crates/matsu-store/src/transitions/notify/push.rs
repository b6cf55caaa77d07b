//! Browsers that have subscribed to notices. One whose token has ended is not found, and the next subscription of its
//! owner removes it.

use matsu_core::error_code::ErrorCode;
use matsu_core::id::SubscriptionId;
use matsu_core::limits::SUBSCRIPTIONS_MAX;
use matsu_core::ports::store::{ListSubscriptions, PutSubscription, RemoveSubscription, StoreError};
use matsu_core::push::PushSubscription;

use crate::sql::{Row, Sql, Transition, Tx, internal, params};

macro_rules! is_valid {
    () => {
        "(s.token_id IS NULL OR EXISTS (SELECT 1 FROM tokens t WHERE t.id = s.token_id AND t.revoked_at IS NULL \
         AND (t.expires_at IS NULL OR t.expires_at > $2)))"
    };
}
macro_rules! columns {
    () => {
        "s.id, s.endpoint, s.p256dh, s.auth, s.sender_key, s.created_at"
    };
}

const LIST: Sql = Sql::both(concat!(
    "SELECT ",
    columns!(),
    " FROM push_subscriptions s WHERE s.owner = $1 AND ",
    is_valid!(),
    " ORDER BY s.seq"
));
const FORGET: Sql = Sql::both(concat!(
    "DELETE FROM push_subscriptions WHERE seq IN (SELECT s.seq FROM push_subscriptions s WHERE s.owner = $1 AND NOT ",
    is_valid!(),
    ")"
));
const OTHERS: Sql = Sql::both("SELECT count(*) FROM push_subscriptions WHERE owner = $1 AND endpoint <> $2");
const PUT: Sql = Sql::both(
    "INSERT INTO push_subscriptions (id, owner, token_id, endpoint, p256dh, auth, sender_key, created_at) \
     VALUES ($1, $2, CAST($3 AS TEXT), $4, $5, $6, $7, $8) ON CONFLICT (owner, endpoint) DO UPDATE SET \
     token_id = excluded.token_id, p256dh = excluded.p256dh, auth = excluded.auth, sender_key = excluded.sender_key \
     RETURNING id, endpoint, p256dh, auth, sender_key, created_at",
);
const REMOVE: Sql = Sql::both("DELETE FROM push_subscriptions WHERE owner = $1 AND id = $2");

fn subscription(row: &Row) -> Result<PushSubscription, StoreError> {
    let mut c = row.columns();
    Ok(PushSubscription {
        id: SubscriptionId::from_text(c.text()?),
        endpoint: c.text()?,
        p256dh: c.text()?,
        auth: c.text()?,
        sender_key: c.text()?,
        created_at: c.time()?,
    })
}

impl Transition for PutSubscription {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<PushSubscription, StoreError> {
        let new = &self.new;
        tx.run(&FORGET, params![&new.owner, self.now]).await?;
        let others = tx.row(&OTHERS, params![&new.owner, &new.endpoint]).await?;
        let others = others.ok_or_else(|| internal("a count has no row"))?.columns().int()?;
        if others >= i64::from(SUBSCRIPTIONS_MAX) {
            return Err(StoreError::Refused {
                code: ErrorCode::LimitExceeded,
                message: format!(
                    "{others} of your browsers get notices, which is the maximum; remove one in the settings of the \
                     page first"
                ),
            });
        }
        let id = SubscriptionId::mint(self.now);
        let row = params![
            &id,
            &new.owner,
            new.token.as_ref(),
            &new.endpoint,
            &new.p256dh,
            &new.auth,
            &new.sender_key,
            self.now
        ];
        let row = tx.row(&PUT, row).await?;
        subscription(&row.ok_or_else(|| internal("a subscription was not stored"))?)
    }
}

impl Transition for ListSubscriptions {
    const READS: bool = true;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Vec<PushSubscription>, StoreError> {
        tx.rows(&LIST, params![&self.0, self.1]).await?.iter().map(subscription).collect()
    }
}

impl Transition for RemoveSubscription {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<(), StoreError> {
        if tx.run(&REMOVE, params![&self.0, &self.1]).await? == 0 {
            return Err(StoreError::NotFound { what: "subscription", id: self.1.to_string() });
        }
        Ok(())
    }
}
