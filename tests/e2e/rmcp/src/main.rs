//! The official Rust SDK as a server whose tools give back what they are given, and as a client.
//!
//! usage: crosswire-e2e-rmcp serve PORT [stateless] | call URL TOOL…

use rmcp::handler::server::{router::tool::ToolRouter, wrapper::Parameters};
use rmcp::model::{CallToolRequestParams, ClientConfig, ServerCapabilities, ServerConfig};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ServerHandler, ServiceError, ServiceExt, schemars, tool, tool_handler, tool_router};
use std::error::Error;
use std::time::Duration;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Text {
    text: String,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Slow {
    text: String,
    #[serde(default)]
    delay: f64,
}

#[derive(Clone)]
struct Echo {
    tool_router: ToolRouter<Self>,
}

#[tool_router]
impl Echo {
    #[tool(annotations(read_only_hint = true))]
    async fn echo(&self, Parameters(Text { text }): Parameters<Text>) -> String {
        text
    }

    #[tool(annotations(read_only_hint = true))]
    async fn slow_echo(&self, Parameters(Slow { text, delay }): Parameters<Slow>) -> String {
        tokio::time::sleep(Duration::from_secs_f64(delay)).await;
        text
    }

    #[tool]
    async fn write(&self, Parameters(Text { text }): Parameters<Text>) -> String {
        text
    }
}

#[tool_handler(router = self.tool_router)]
impl ServerHandler for Echo {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }
}

async fn serve(port: u16, stateless: bool) -> Result<(), Box<dyn Error>> {
    let config = StreamableHttpServerConfig::default().with_legacy_session_mode(!stateless);
    let new = || Ok(Echo { tool_router: Echo::tool_router() });
    let service: StreamableHttpService<Echo, LocalSessionManager> =
        StreamableHttpService::new(new, Default::default(), config);
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    axum::serve(listener, axum::Router::new().nest_service("/mcp", service)).await?;
    Ok(())
}

/// Calls all tools at once and says what became of each, one line a call.
async fn call(url: String, tools: &[String]) -> Result<(), Box<dyn Error>> {
    let config = StreamableHttpClientTransportConfig::with_uri(url);
    let client = ClientConfig::default().serve(StreamableHttpClientTransport::from_config(config)).await?;
    let mut calls = vec![];
    for tool in tools {
        let (peer, tool) = (client.peer().clone(), tool.clone());
        calls.push(tokio::spawn(async move {
            let request = CallToolRequestParams::new(tool.clone());
            let said = match tokio::time::timeout(Duration::from_secs(2), peer.call_tool(request)).await {
                Err(_) => "timeout".to_owned(),
                Ok(Err(e)) => error(&e).to_owned(),
                Ok(Ok(result)) => result.content.first().and_then(|c| Some(c.as_text()?.text.clone())).unwrap_or_default(),
            };
            format!("{tool}: {said}")
        }));
        // In order on any machine, and still in flight at once.
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    for call in calls {
        println!("{}", call.await?);
    }
    // What it still has to say to the server.
    tokio::time::sleep(Duration::from_millis(400)).await;
    Ok(())
}

fn error(e: &ServiceError) -> &'static str {
    match e {
        ServiceError::McpError(_) => "error McpError",
        ServiceError::TransportSend(_) => "error TransportSend",
        ServiceError::TransportClosed => "error TransportClosed",
        ServiceError::UnexpectedResponse => "error UnexpectedResponse",
        ServiceError::Cancelled { .. } => "error Cancelled",
        ServiceError::Timeout { .. } => "error Timeout",
        _ => "error",
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve", port] => serve(port.parse()?, false).await,
        ["serve", port, "stateless"] => serve(port.parse()?, true).await,
        ["call", url, ..] => call(url.to_owned(), &args[2..]).await,
        _ => Err("usage: serve PORT [stateless] | call URL TOOL…".into()),
    }
}
