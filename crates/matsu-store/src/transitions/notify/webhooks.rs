//! Incoming webhooks and their deliveries. A delivery is stored once over all nodes: the row of its webhook is locked
//! while it is looked for.

use matsu_core::change::Topic;
use matsu_core::clock::Timestamp;
use matsu_core::error_code::ErrorCode;
use matsu_core::id::{DeliveryId, TaskId, WebhookId};
use matsu_core::limits::{WEBHOOK_DELIVERIES_KEPT, WEBHOOK_GAP_MIN, WEBHOOK_WAITING_MAX};
use matsu_core::page::Page;
use matsu_core::ports::store::{
    AddWebhook, HasWebhooks, ListDeliveries, ListWebhooks, NextDeliveryAt, PauseWebhook, ReadWebhook, ReceiveDelivery,
    RemoveWebhook, SettleDelivery, StoreError, TakeDeliveries, WebhookAt,
};
use matsu_core::principal::Principal;
use matsu_core::secret::Token;
use matsu_core::webhook::{Delivery, DeliveryState, Receipt, RemovedWebhook, Webhook, WebhookKind};

use super::unstarted;
use crate::sql::{Columns, Row, Sql, Transition, Tx, internal, params};
use crate::transitions::paging::page;

macro_rules! webhook_columns {
    () => {
        "w.seq, w.id, w.owner, w.name, w.kind, w.secret, w.run_json, w.directory, w.paused, w.created_at"
    };
}
macro_rules! delivery_columns {
    () => {
        "d.seq, d.id, d.webhook_id, d.key, d.received_at, d.state, d.task_id, d.note"
    };
}

const ADD: Sql = Sql::both(
    "INSERT INTO webhooks (id, owner, name, kind, secret, run_json, directory, free_at, created_at) \
     VALUES ($1, $2, $3, $4, $5, $6, CAST($7 AS TEXT), $8, $8) ON CONFLICT (owner, name) DO NOTHING",
);
const ONE: Sql = Sql::both(concat!(
    "SELECT ",
    webhook_columns!(),
    " FROM webhooks w WHERE w.owner = $1 AND (w.id = $2 OR w.name = $2) ORDER BY w.id = $2 DESC LIMIT 1"
));
const AT: Sql = Sql::both(concat!("SELECT ", webhook_columns!(), " FROM webhooks w WHERE w.id = $1"));
const LIST: Sql = Sql::both(concat!(
    "SELECT ",
    webhook_columns!(),
    " FROM webhooks w WHERE w.owner = $1 AND w.seq > coalesce(CAST($2 AS BIGINT), -1) ORDER BY w.seq LIMIT $3"
));
const PAUSE: Sql = Sql::both("UPDATE webhooks SET paused = CAST($2 AS TEXT) WHERE id = $1");
const REMOVE: Sql = Sql::both("DELETE FROM webhooks WHERE id = $1");
const REMOVE_DELIVERIES: Sql = Sql::both("DELETE FROM deliveries WHERE webhook_id = $1");
const HAS: Sql = Sql::both("SELECT count(*) FROM webhooks WHERE paused IS NULL");
const LOCK: Sql = Sql::each(
    "SELECT free_at FROM webhooks WHERE id = $1",
    // Two nodes that receive at once: one looks after the other has stored.
    "SELECT free_at FROM webhooks WHERE id = $1 FOR UPDATE",
);
const SAME: Sql = Sql::both(concat!(
    "SELECT ",
    delivery_columns!(),
    " FROM deliveries d WHERE d.webhook_id = $1 AND (d.key = $2 OR d.digest = CAST($3 AS TEXT)) LIMIT 1"
));
const WAITING: Sql = Sql::both("SELECT count(*) FROM deliveries WHERE webhook_id = $1 AND try_at IS NOT NULL");
const RECEIVE: Sql = Sql::both(
    "INSERT INTO deliveries (id, webhook_id, key, digest, received_at, state, payload, try_at) \
     VALUES ($1, $2, $3, CAST($4 AS TEXT), $5, $6, $7, $8)",
);
const TAKEN_UNTIL: Sql = Sql::both("UPDATE webhooks SET free_at = $2 WHERE id = $1");
const FORGET: Sql = Sql::both("DELETE FROM deliveries WHERE webhook_id = $1 AND try_at IS NULL AND received_at < $2");
const TO_START: Sql = Sql::each(
    concat!(
        "SELECT ",
        delivery_columns!(),
        ", d.payload, ",
        webhook_columns!(),
        " FROM deliveries d JOIN webhooks w ON w.id = d.webhook_id WHERE d.try_at <= $1 AND w.paused IS NULL \
         ORDER BY d.try_at, d.seq LIMIT $2"
    ),
    concat!(
        "SELECT ",
        delivery_columns!(),
        ", d.payload, ",
        webhook_columns!(),
        " FROM deliveries d JOIN webhooks w ON w.id = d.webhook_id WHERE d.try_at <= $1 AND w.paused IS NULL \
         ORDER BY d.try_at, d.seq LIMIT $2 FOR UPDATE OF d SKIP LOCKED"
    ),
);
const TAKE: Sql = Sql::each(
    "UPDATE deliveries SET try_at = $2 WHERE id = $1",
    "UPDATE deliveries SET try_at = $2 WHERE id = ANY($1)",
);
const SETTLE: Sql = Sql::both(
    "UPDATE deliveries SET state = $2, task_id = CAST($3 AS TEXT), note = CAST($4 AS TEXT), payload = NULL, \
     try_at = NULL WHERE id = $1 AND try_at IS NOT NULL",
);
const DELIVERIES: Sql = Sql::both(concat!(
    "SELECT ",
    delivery_columns!(),
    " FROM deliveries d WHERE d.webhook_id = $1 AND d.seq < coalesce(CAST($2 AS BIGINT), 9223372036854775807) \
     ORDER BY d.seq DESC LIMIT $3"
));
const NEXT: Sql = Sql::both(
    "SELECT min(d.try_at) FROM deliveries d JOIN webhooks w ON w.id = d.webhook_id \
     WHERE d.try_at IS NOT NULL AND w.paused IS NULL",
);

fn webhook(c: &mut Columns<'_>) -> Result<Webhook, StoreError> {
    Ok(Webhook {
        seq: c.int()?,
        id: WebhookId::from_text(c.text()?),
        owner: Principal::from_text(c.text()?),
        name: c.text()?,
        kind: c.word(WebhookKind::parse)?,
        secret: Token::new(&c.text()?),
        run: serde_json::from_str(&c.text()?).map_err(internal)?,
        directory: c.opt_text()?,
        paused: c.opt_text()?,
        created_at: c.time()?,
    })
}

fn delivery(c: &mut Columns<'_>) -> Result<Delivery, StoreError> {
    Ok(Delivery {
        seq: c.int()?,
        id: DeliveryId::from_text(c.text()?),
        webhook_id: WebhookId::from_text(c.text()?),
        key: c.text()?,
        received_at: c.time()?,
        state: c.word(DeliveryState::parse)?,
        task_id: c.opt_text()?.map(TaskId::from_text),
        note: c.opt_text()?,
    })
}

fn all(rows: &[Row]) -> Result<Vec<Webhook>, StoreError> {
    rows.iter().map(|row| webhook(&mut row.columns())).collect()
}

async fn find(tx: &mut Tx<'_>, owner: &Principal, key: &str) -> Result<Webhook, StoreError> {
    let row = tx.row(&ONE, params![owner, key]).await?;
    let row = row.ok_or_else(|| StoreError::NotFound { what: "webhook", id: key.to_owned() })?;
    webhook(&mut row.columns())
}

/// Deliveries that wait for their start.
async fn waiting(tx: &mut Tx<'_>, id: &WebhookId) -> Result<u32, StoreError> {
    tx.row(&WAITING, params![id]).await?.map_or(Ok(0), |row| row.columns().count())
}

impl Transition for AddWebhook {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<Webhook, StoreError> {
        let (new, id) = (&self.new, WebhookId::mint(self.now));
        let run = serde_json::to_string(&new.run).map_err(internal)?;
        let (secret, directory) = (&**new.secret.reveal(), new.directory.as_deref());
        let row = params![&id, &new.owner, &new.name, new.kind.as_str(), secret, &run, directory, self.now];
        if tx.run(&ADD, row).await? == 0 {
            let message = format!("there is a webhook {} already; remove it first, or choose another name", new.name);
            return Err(StoreError::Refused { code: ErrorCode::InvalidParams, message });
        }
        tx.publish(Topic::webhooks());
        find(tx, &new.owner, id.as_str()).await
    }
}

impl Transition for ReadWebhook {
    const READS: bool = true;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Webhook, StoreError> {
        find(tx, &self.0, &self.1).await
    }
}

impl Transition for WebhookAt {
    const READS: bool = true;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Option<Webhook>, StoreError> {
        let row = tx.row(&AT, params![&self.0]).await?;
        row.map(|row| webhook(&mut row.columns())).transpose()
    }
}

impl Transition for ListWebhooks {
    const READS: bool = true;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Page<Webhook>, StoreError> {
        let rows = tx.rows(&LIST, params![&self.0, self.1.after, self.1.limit() + 1]).await?;
        Ok(page(all(&rows)?, &self.1, |webhook| webhook.seq))
    }
}

impl Transition for PauseWebhook {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<(), StoreError> {
        tx.run(&PAUSE, params![&self.0, self.1.as_deref()]).await?;
        tx.publish(Topic::webhooks());
        Ok(())
    }
}

impl Transition for RemoveWebhook {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<RemovedWebhook, StoreError> {
        let webhook = find(tx, &self.0, &self.1).await?;
        // The row of the webhook first: who receives a delivery locks it too.
        tx.run(&REMOVE, params![&webhook.id]).await?;
        let dropped = waiting(tx, &webhook.id).await?;
        tx.run(&REMOVE_DELIVERIES, params![&webhook.id]).await?;
        Ok(RemovedWebhook { webhook, dropped })
    }
}

impl Transition for HasWebhooks {
    const READS: bool = true;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<bool, StoreError> {
        let row = tx.row(&HAS, params![]).await?;
        Ok(row.map_or(Ok(0), |row| row.only_int())? > 0)
    }
}

impl Transition for ReceiveDelivery {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<Receipt, StoreError> {
        let (new, now) = (&self.new, self.now);
        let gone = || StoreError::NotFound { what: "webhook", id: new.webhook.to_string() };
        let free_at = tx.row(&LOCK, params![&new.webhook]).await?.ok_or_else(gone)?.columns().time()?;
        let digest = new.digest.as_deref();
        if let Some(row) = tx.row(&SAME, params![&new.webhook, &new.key, digest]).await? {
            return Ok(Receipt::Repeated(delivery(&mut row.columns())?));
        }
        let waiting = waiting(tx, &new.webhook).await?;
        if waiting >= WEBHOOK_WAITING_MAX {
            return Ok(Receipt::Full);
        }
        // Where the clock was set back, the stored time may lie far ahead.
        let latest = now.plus(WEBHOOK_GAP_MIN * (waiting + 1));
        let starts_at = free_at.max(now).min(latest);
        let (id, state) = (DeliveryId::mint(now), DeliveryState::Waiting.as_str());
        let row = params![&id, &new.webhook, &new.key, digest, now, state, &new.payload, starts_at];
        tx.run(&RECEIVE, row).await?;
        tx.run(&TAKEN_UNTIL, params![&new.webhook, starts_at.plus(WEBHOOK_GAP_MIN)]).await?;
        tx.run(&FORGET, params![&new.webhook, now.minus(WEBHOOK_DELIVERIES_KEPT)]).await?;
        tx.publish(Topic::webhooks());
        let stored = tx.row(&SAME, params![&new.webhook, &new.key, None::<&str>]).await?;
        let stored = stored.ok_or_else(|| internal("a delivery that was just stored is not there"))?;
        Ok(Receipt::Stored(delivery(&mut stored.columns())?))
    }
}

impl Transition for TakeDeliveries {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<Vec<(Delivery, String, Webhook)>, StoreError> {
        let mut taken = Vec::new();
        for row in &tx.rows(&TO_START, params![self.now, self.rows_max]).await? {
            let mut c = row.columns();
            taken.push((delivery(&mut c)?, c.opt_text()?.unwrap_or_default(), webhook(&mut c)?));
        }
        let ids: Vec<&str> = taken.iter().map(|(delivery, ..)| delivery.id.as_str()).collect();
        tx.run_of(&TAKE, &ids, params![self.again_at]).await?;
        Ok(taken)
    }
}

impl Transition for SettleDelivery {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<(), StoreError> {
        let (state, task, note) = match &self.begun {
            Ok(task) => (DeliveryState::Started, Some(task.as_str()), None),
            Err(unstarted) => (DeliveryState::Failed, Some(unstarted.task_id.as_str()), Some(unstarted.why.as_str())),
        };
        let settled = tx.run(&SETTLE, params![&self.id, state.as_str(), task, note]).await?;
        if let Err(unstarted) = &self.begun
            && settled > 0
        {
            unstarted::record(tx, unstarted).await?;
        }
        Ok(())
    }
}

impl Transition for ListDeliveries {
    const READS: bool = true;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Page<Delivery>, StoreError> {
        let rows = tx.rows(&DELIVERIES, params![&self.0, self.1.after, self.1.limit() + 1]).await?;
        let found = rows.iter().map(|row| delivery(&mut row.columns())).collect::<Result<Vec<_>, _>>()?;
        Ok(page(found, &self.1, |delivery| delivery.seq))
    }
}

impl Transition for NextDeliveryAt {
    const READS: bool = true;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Option<Timestamp>, StoreError> {
        match tx.row(&NEXT, params![]).await? {
            Some(row) => row.columns().opt_time(),
            None => Ok(None),
        }
    }
}
