//! A database of its own on the given server, so that no contender meets another's tables.

use anyhow::{Context, Result};
use tokio_postgres::NoTls;

pub struct ScratchDatabase {
    server: String,
    name: String,
}

impl ScratchDatabase {
    pub async fn create(server: &str) -> Result<Self> {
        let name = format!("bench_matsu_{}", std::process::id());
        let database = Self { server: server.to_owned(), name };
        database.admin(&format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", database.name)).await?;
        database.admin(&format!("CREATE DATABASE {}", database.name)).await?;
        Ok(database)
    }

    pub fn url(&self) -> Result<String> {
        let (server, _) = self.server.rsplit_once('/').context("the Postgres URL names no database")?;
        Ok(format!("{server}/{}", self.name))
    }

    pub async fn drop(self) -> Result<()> {
        self.admin(&format!("DROP DATABASE {} WITH (FORCE)", self.name)).await
    }

    async fn admin(&self, sql: &str) -> Result<()> {
        let (client, connection) =
            tokio_postgres::connect(&self.server, NoTls).await.context("cannot reach Postgres")?;
        let connection = tokio::spawn(connection);
        client.batch_execute(sql).await?;
        drop(client);
        connection.await??;
        Ok(())
    }
}
