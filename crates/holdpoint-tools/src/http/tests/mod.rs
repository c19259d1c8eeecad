//! Requests to real servers on this machine.

mod answers;
mod endpoint;
mod guard;
mod http_request;
mod server;
mod template;

use holdpoint_core::message::Content;
use holdpoint_runtime::ports::tool::{RunTool, ToolFailure};
use serde_json::Value;

use super::client::client_builder;
use super::{Endpoint, HttpClient, HttpMethod, HttpRunner};
use crate::testing::{arguments, context};
use server::Server;

/// No test here waits as long as this.
const SOON: std::time::Duration = std::time::Duration::from_secs(30);

async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(SOON, what).await.expect("within the time that a test may take")
}

/// Connections that no proxy of the environment gets in the way of.
fn direct() -> HttpClient {
    HttpClient(client_builder().no_proxy().build().unwrap())
}

fn at(method: HttpMethod, server: &Server, path: &str) -> Endpoint {
    Endpoint::new(method, &server.url(path)).unwrap()
}

fn runner(endpoint: Endpoint) -> HttpRunner {
    HttpRunner { client: direct(), endpoint }
}

async fn call(endpoint: Endpoint, value: &Value) -> Result<Content, ToolFailure> {
    soon(runner(endpoint).run(context(), arguments(value))).await
}
