//! Connecting to PostgreSQL: the only place that does. The pool, the schema, the migrations.
#![expect(clippy::disallowed_methods, reason = "the one file that connects to PostgreSQL")]

use std::str::FromStr;

use deadpool_postgres::{Manager, ManagerConfig, Object, Pool, QueueMode, RecyclingMethod, Runtime};
use matsu_core::error_code::ErrorCode;
use matsu_core::ports::store::StoreError;
use tokio_postgres::config::SslMode;
use tokio_postgres::{Config, NoTls};

use crate::sql::internal;
use crate::sql::postgres::error;

/// Each is applied once, in order, and never edited.
const MIGRATIONS: &[&str] = &[
    include_str!("../../migrations/postgres/0001_engine.sql"),
    include_str!("../../migrations/postgres/0002_sessions.sql"),
    include_str!("../../migrations/postgres/0003_failed_tasks.sql"),
    include_str!("../../migrations/postgres/0004_transcripts.sql"),
    include_str!("../../migrations/postgres/0005_engine_care.sql"),
    include_str!("../../migrations/postgres/0006_runs.sql"),
    include_str!("../../migrations/postgres/0007_research.sql"),
    include_str!("../../migrations/postgres/0008_open_tasks.sql"),
    include_str!("../../migrations/postgres/0009_chat_turns.sql"),
    include_str!("../../migrations/postgres/0010_marks.sql"),
    include_str!("../../migrations/postgres/0011_in_place.sql"),
    include_str!("../../migrations/postgres/0012_run_ids.sql"),
    include_str!("../../migrations/postgres/0013_lone_jobs.sql"),
    include_str!("../../migrations/postgres/0014_access.sql"),
    include_str!("../../migrations/postgres/0015_survival.sql"),
    include_str!("../../migrations/postgres/0016_ranked_claims.sql"),
    include_str!("../../migrations/postgres/0017_finished.sql"),
    include_str!("../../migrations/postgres/0018_notify.sql"),
    include_str!("../../migrations/postgres/0019_reviews.sql"),
    include_str!("../../migrations/postgres/0020_dependencies.sql"),
    include_str!("../../migrations/postgres/0021_schedules.sql"),
    include_str!("../../migrations/postgres/0022_webhooks.sql"),
    include_str!("../../migrations/postgres/0023_spent.sql"),
    include_str!("../../migrations/postgres/0024_push.sql"),
    include_str!("../../migrations/postgres/0025_same_claims.sql"),
    include_str!("../../migrations/postgres/0026_notice_outcomes.sql"),
];

pub const SCHEMA_VERSION: i64 = MIGRATIONS.len() as i64;

const CONNECTIONS_MAX: usize = 16;

/// Every statement reads a few rows by an index made for it. So the plan is made once for each connection, whatever
/// its parameters are, and does not depend on how full the tables were at that moment. Bitmaps are out because only
/// a plain index scan marks the entries of dead rows, of which a queue leaves many, so that the next one skips them.
const SETTINGS: &str = "-c default_transaction_isolation=read\\ committed -c plan_cache_mode=force_generic_plan \
     -c enable_seqscan=off -c enable_bitmapscan=off -c jit=off";

/// How long a caller waits for a connection before it gets the error that the store is not available.
const CONNECTION_WAIT_MAX: std::time::Duration = std::time::Duration::from_secs(5);

/// Any number that no other program locks; keeps two nodes from migrating at once.
const MIGRATION_LOCK: i64 = 0x6d61_7473_7531;

/// Said at once: as a failure of the connection it would be tried again for ever.
const NO_TLS: &str = "matsu connects to PostgreSQL without TLS; use a server on this machine, or a tunnel that \
    encrypts (ssh -L, stunnel, a VPN), and leave sslmode out of the address";

/// One server, one schema in it, a pool of connections. Cheap to clone.
#[derive(Clone)]
pub struct Server {
    config: Config,
    schema: String,
    pool: Pool,
}

impl Server {
    /// Reads the address. `?schema=NAME` chooses a schema other than `public`.
    pub fn connect(url: &str) -> Result<Self, StoreError> {
        let (url, schema) = split_schema(url)?;
        let mut config =
            Config::from_str(&url).map_err(|error| invalid(&format!("cannot read the address: {error}")))?;
        if config.get_ssl_mode() == SslMode::Require {
            return Err(invalid(NO_TLS));
        }
        config.options(format!("-c search_path={schema} {SETTINGS}"));
        config.application_name("matsu");
        config.connect_timeout(CONNECTION_WAIT_MAX);
        config.keepalives_idle(std::time::Duration::from_secs(30));
        let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = Manager::from_config(config.clone(), NoTls, recycling);
        let pool = Pool::builder(manager)
            .max_size(CONNECTIONS_MAX)
            .wait_timeout(Some(CONNECTION_WAIT_MAX))
            .create_timeout(Some(CONNECTION_WAIT_MAX))
            .recycle_timeout(Some(CONNECTION_WAIT_MAX))
            // The one used last has its statements planned and its pages at hand.
            .queue_mode(QueueMode::Lifo)
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(internal)?;
        Ok(Self { config, schema, pool })
    }

    /// A connection from the pool.
    pub async fn client(&self) -> Result<Object, StoreError> {
        self.pool.get().await.map_err(|error| StoreError::Unavailable(error.to_string()))
    }

    /// The channel on which nodes of this schema tell each other of changes.
    pub fn channel(&self) -> String {
        format!("matsu_{}", self.schema)
    }

    /// Where it is, without the password.
    pub fn location(&self) -> String {
        let hosts: Vec<String> = self
            .config
            .get_hosts()
            .iter()
            .map(|host| match host {
                tokio_postgres::config::Host::Tcp(name) => name.clone(),
                #[cfg(unix)]
                tokio_postgres::config::Host::Unix(path) => path.display().to_string(),
            })
            .collect();
        let database = self.config.get_dbname().unwrap_or("");
        format!("postgres://{}/{database}?schema={}", hosts.join(","), self.schema)
    }

    /// Brings the schema up to date; refuses a newer one.
    pub async fn migrate(&self) -> Result<(), StoreError> {
        let mut client = self.client().await?;
        let transaction = client.transaction().await.map_err(error)?;
        transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&MIGRATION_LOCK]).await.map_err(error)?;
        // A user who may not make schemas can still use one that is there.
        let there = transaction
            .query_opt("SELECT 1 FROM pg_namespace WHERE nspname = $1", &[&self.schema])
            .await
            .map_err(error)?;
        if there.is_none() {
            transaction.batch_execute(&format!("CREATE SCHEMA {}", self.schema)).await.map_err(error)?;
        }
        let versions = "CREATE TABLE IF NOT EXISTS matsu_schema (version BIGINT NOT NULL)";
        transaction.batch_execute(versions).await.map_err(error)?;
        let row = transaction.query_one("SELECT coalesce(max(version), 0) FROM matsu_schema", &[]).await;
        let found: i64 = row.map_err(error)?.get(0);
        if found > SCHEMA_VERSION {
            return Err(StoreError::Refused {
                code: ErrorCode::StoreNewer,
                message: format!(
                    "the store has schema {found}, but this version of matsu knows only up to {SCHEMA_VERSION}; use a newer matsu"
                ),
            });
        }
        for step in MIGRATIONS.iter().skip(usize::try_from(found).map_err(internal)?) {
            transaction.batch_execute(step).await.map_err(error)?;
        }
        if found < SCHEMA_VERSION {
            transaction
                .execute("INSERT INTO matsu_schema (version) VALUES ($1)", &[&SCHEMA_VERSION])
                .await
                .map_err(error)?;
        }
        transaction.commit().await.map_err(error)
    }

    /// A connection of its own, outside the pool, with the half that must be driven.
    pub async fn dedicated(
        &self,
    ) -> Result<
        (tokio_postgres::Client, tokio_postgres::Connection<tokio_postgres::Socket, tokio_postgres::tls::NoTlsStream>),
        StoreError,
    > {
        self.config.connect(NoTls).await.map_err(error)
    }
}

fn invalid(message: &str) -> StoreError {
    StoreError::Refused { code: ErrorCode::InvalidParams, message: message.to_owned() }
}

/// Takes `schema=NAME` out of the query, which the client library does not know.
fn split_schema(url: &str) -> Result<(String, String), StoreError> {
    let Some((base, query)) = url.split_once('?') else { return Ok((url.to_owned(), "public".to_owned())) };
    let mut schema = "public".to_owned();
    let mut rest = Vec::new();
    for pair in query.split('&') {
        match pair.strip_prefix("schema=") {
            Some(name) => schema = name.to_owned(),
            None => rest.push(pair),
        }
    }
    let plain = !schema.is_empty() && schema.len() <= 50;
    if !plain || !schema.chars().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_') {
        return Err(invalid("a schema name has 1 to 50 small letters, digits and underscores"));
    }
    let query = if rest.is_empty() { String::new() } else { format!("?{}", rest.join("&")) };
    Ok((format!("{base}{query}"), schema))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn tls_that_is_asked_for_is_refused_in_words() {
        let refused = Server::connect("postgres://h/db?sslmode=require&schema=a").err().map(|error| error.to_string());
        assert!(refused.is_some_and(|text| text.contains("without TLS")));
        assert!(Server::connect("postgres://h/db?sslmode=disable").is_ok());
    }

    #[test]
    fn the_schema_is_taken_out_of_the_address() {
        let split = |url| split_schema(url).ok();
        let pair = |url: &str, schema: &str| Some((url.to_owned(), schema.to_owned()));
        assert_eq!(split("postgres://h/db"), pair("postgres://h/db", "public"));
        assert_eq!(split("postgres://h/db?schema=a1"), pair("postgres://h/db", "a1"));
        assert_eq!(split("postgres://h/db?x=1&schema=a_b&y=2"), pair("postgres://h/db?x=1&y=2", "a_b"));
        assert_eq!(split("postgres://h/db?schema=a;drop"), None);
    }
}
