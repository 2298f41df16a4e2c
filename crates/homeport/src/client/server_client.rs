//! A client of a server's HTTP interface, for commands.

use std::time::Duration;

use anyhow::{Context as _, anyhow};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::{Request, Response, Uri};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;

use crate::client::pool::{Pool, Trust, pool};
use crate::config::{Settings, Url, shown};
use crate::storage::secrets;

const TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum size of a response; a page of a thousand keys is far smaller.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Connections to keep for the next request.
const IDLE_MAX: usize = 1;
/// Parts of a download that may wait to be written.
const PARTS_WAITING_MAX: usize = 8;

/// A client that authenticates with the admin token.
pub(crate) struct ServerClient {
    pool: Pool,
    url: String,
    /// The URL without secrets, for messages.
    shown: String,
    token: String,
}

/// The members of a problem response that are shown.
#[derive(Deserialize)]
struct Problem {
    detail: String,
    code: String,
}

impl ServerClient {
    pub(crate) fn new(url: &Url, settings: &Settings, trust: Trust) -> anyhow::Result<Self> {
        let url = url.to_string();
        let address: Uri = url
            .parse()
            .with_context(|| format!("{} is not a valid URL", shown(&url)))?;
        let token = secrets::known_admin_token(settings)?.with_context(|| {
            format!(
                "the server at {} needs the admin token; give it with --admin-token or HOMEPORT_ADMIN_TOKEN, or name the server's data directory with --data-dir",
                shown(&url)
            )
        })?;
        Ok(Self {
            pool: pool(&address, IDLE_MAX, trust)?,
            shown: shown(&url),
            url,
            token: token.text,
        })
    }

    /// Sends a request and parses the JSON response.
    pub(crate) async fn ask<T: DeserializeOwned>(
        &self,
        method: &str,
        path: &str,
        body: String,
    ) -> anyhow::Result<T> {
        let text = self.text(method, path, body).await?;
        serde_json::from_str(&text).with_context(|| {
            format!(
                "unexpected response from {}; is it a Homeport server?",
                self.shown
            )
        })
    }

    /// Sends a request whose response body does not matter.
    pub(crate) async fn tell(&self, method: &str, path: &str) -> anyhow::Result<()> {
        self.text(method, path, String::new()).await.map(|_| ())
    }

    /// Downloads a file in parts. An incomplete file ends with an error. The timeout covers only the response's head.
    pub(crate) async fn download(
        &self,
        path: &str,
    ) -> anyhow::Result<mpsc::Receiver<anyhow::Result<Bytes>>> {
        let asking = self.request("GET", path, String::new());
        let response = self.in_time(asking).await?;
        let status = response.status();
        if !status.is_success() {
            let text = self.in_time(whole(response)).await?;
            return Err(self.refusal(status.as_u16(), &text));
        }
        let (sender, receiver) = mpsc::channel(PARTS_WAITING_MAX);
        tokio::spawn(async move {
            let mut body = response.into_body();
            while let Some(frame) = body.frame().await {
                let part = frame
                    .map_err(|error| {
                        anyhow::Error::new(error).context("the download is incomplete")
                    })
                    .map(|frame| frame.into_data().unwrap_or_default());
                let is_over = part.is_err();
                if sender.send(part).await.is_err() || is_over {
                    return;
                }
            }
        });
        Ok(receiver)
    }

    fn refusal(&self, status: u16, text: &str) -> anyhow::Error {
        match serde_json::from_str::<Problem>(text) {
            Ok(problem) => anyhow!("{}: {} ({})", self.shown, problem.detail, problem.code),
            Err(_) => anyhow!("{} answered with status {status}", self.shown),
        }
    }

    async fn text(&self, method: &str, path: &str, body: String) -> anyhow::Result<String> {
        let exchange = async {
            let response = self.request(method, path, body).await?;
            let status = response.status();
            Ok((status, whole(response).await?))
        };
        let (status, text) = self.in_time(exchange).await?;
        if status.is_success() {
            return Ok(text);
        }
        Err(self.refusal(status.as_u16(), &text))
    }

    async fn request(
        &self,
        method: &str,
        path: &str,
        body: String,
    ) -> anyhow::Result<Response<Incoming>> {
        let request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.url))
            .header("authorization", format!("Bearer {}", self.token))
            .header("content-type", "application/json")
            .body(Full::new(Bytes::from(body)))?;
        let response = self.pool.request(request).await;
        response.with_context(|| format!("sending a request to {}", self.shown))
    }

    async fn in_time<T>(
        &self,
        asking: impl Future<Output = anyhow::Result<T>>,
    ) -> anyhow::Result<T> {
        let answer = tokio::time::timeout(TIMEOUT, asking).await;
        answer.with_context(|| format!("{} did not answer within {TIMEOUT:?}", self.shown))?
    }
}

/// The text of a response.
async fn whole(response: Response<Incoming>) -> anyhow::Result<String> {
    let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX);
    let body = body.collect().await;
    let body = body.map_err(|error| anyhow!("the response was cut off: {error}"))?;
    String::from_utf8(body.to_bytes().into()).context("the response is not UTF-8 text")
}

/// Percent-encodes everything in a query value that is not unreserved.
pub(crate) fn escape_query_value(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                out.push(char::from(byte));
            }
            byte => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn query_values_are_escaped() {
        assert_eq!(escape_query_value("AA:BB"), "AA%3ABB");
        assert_eq!(
            escape_query_value("group/device&x=ü"),
            "group%2Fdevice%26x%3D%C3%BC"
        );
    }
}
