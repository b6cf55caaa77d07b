//! The listeners of Matsu: HTTP on loopback, the Unix socket, REST. The only crate that knows axum.

pub mod app;
pub mod auth;
mod connections;
mod guards;
mod http;
pub mod limits;
pub mod listeners;
pub mod mcp;
mod openapi;
mod page;
pub mod peer;
mod problem;
mod resource;
mod wire;

pub use app::{App, AppOptions, HandOver};
pub use http::{Transport, guarded, rest_description, router};
