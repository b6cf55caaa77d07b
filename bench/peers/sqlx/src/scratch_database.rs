//! A database of its own on the given server for each measurement, so that no peer meets another's tables.
//!
//! It is dropped on close; a crashed measurement leaves one behind, which the private server takes with it.

use anyhow::{Context, Result};
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};

pub struct ScratchDatabase {
    options: PgConnectOptions,
    name: String,
}

impl ScratchDatabase {
    pub async fn create(server: &str) -> Result<Self> {
        let options: PgConnectOptions = server.parse().context("the Postgres URL does not parse")?;
        let name = format!("bench_{}", std::process::id());
        let admin = PgPool::connect_with(options.clone()).await.context("cannot reach Postgres")?;
        sqlx::query(sqlx::AssertSqlSafe(format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")))
            .execute(&admin)
            .await?;
        sqlx::query(sqlx::AssertSqlSafe(format!("CREATE DATABASE {name}"))).execute(&admin).await?;
        admin.close().await;
        Ok(Self { options, name })
    }

    pub async fn pool(&self, connections_max: u32) -> Result<PgPool> {
        let options = self.options.clone().database(&self.name);
        Ok(PgPoolOptions::new().max_connections(connections_max).connect_with(options).await?)
    }

    pub async fn close(self) -> Result<()> {
        let admin = PgPool::connect_with(self.options).await?;
        sqlx::query(sqlx::AssertSqlSafe(format!("DROP DATABASE {} WITH (FORCE)", self.name))).execute(&admin).await?;
        admin.close().await;
        Ok(())
    }
}
