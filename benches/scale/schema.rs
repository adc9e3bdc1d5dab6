//! Vaults in schemas of the database.

use std::path::PathBuf;

use postgres::{Client, NoTls};
use runvault::Vault;

use crate::Bench;

/// A schema, which is dropped with the vault in it.
pub struct Schema<'b> {
    bench: &'b Bench,
    name: &'static str,
}

impl<'b> Schema<'b> {
    /// Returns a schema that does not exist.
    pub fn new(bench: &'b Bench, name: &'static str) -> Self {
        let schema = Self { bench, name };
        schema.drop_it();
        schema
    }

    pub fn address(&self) -> PathBuf {
        let separator = if self.bench.url.contains('?') { '&' } else { '?' };
        format!("{}{separator}schema={}", self.bench.url, self.name).into()
    }

    pub fn create(&self) -> Vault {
        Vault::create(&self.address()).expect("a vault")
    }

    /// Returns a connection that is not of the library.
    pub fn client(&self) -> Client {
        let mut client = Client::connect(&self.bench.url, NoTls).expect("a connection");
        client.batch_execute(&format!("SET search_path TO {}", self.name)).expect("its schema");
        client
    }

    /// Returns the bytes of a table with its indexes.
    pub fn size_of(&self, table: &str) -> u64 {
        let sql = "SELECT pg_total_relation_size($1::text::regclass)";
        let size: i64 = self.client().query_one(sql, &[&table]).expect("its size").get(0);
        size.unsigned_abs()
    }

    /// Returns the bytes of all tables with their indexes.
    pub fn size(&self) -> u64 {
        let sql = "SELECT sum(pg_total_relation_size(c.oid))::bigint FROM pg_class c
                    WHERE c.relnamespace = $1::text::regnamespace AND c.relkind IN ('r', 'p')";
        let size: i64 = self.client().query_one(sql, &[&self.name]).expect("its size").get(0);
        size.unsigned_abs()
    }

    fn drop_it(&self) {
        let mut client = Client::connect(&self.bench.url, NoTls).expect("a connection");
        let drop = format!("SET client_min_messages TO error; DROP SCHEMA IF EXISTS {} CASCADE", self.name);
        client.batch_execute(&drop).expect("dropped");
    }
}

impl Drop for Schema<'_> {
    fn drop(&mut self) {
        self.drop_it();
    }
}
