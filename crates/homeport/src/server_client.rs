//! A server's HTTP interface, as commands ask it.

use std::time::Duration;

use anyhow::{Context as _, anyhow};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::{Request, Response, Uri};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;

use crate::config::{Settings, Url, shown};
use crate::pool::{Pool, pool};
use crate::secrets;

const TIMEOUT: Duration = Duration::from_secs(30);
/// Larger answers are none of ours: a page of a thousand keys is far below.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Connections that are kept for the next request.
const IDLE_MAX: usize = 1;
/// Parts of a file that wait to be written.
const PARTS_WAITING_MAX: usize = 8;

/// A server, asked as an operator.
pub(crate) struct ServerClient {
    pool: Pool,
    url: String,
    /// The URL as messages show it.
    shown: String,
    token: String,
}

/// What is read of a problem.
#[derive(Deserialize)]
struct Problem {
    detail: String,
    code: String,
}

impl ServerClient {
    pub(crate) fn new(url: &Url, settings: &Settings) -> anyhow::Result<Self> {
        let url = url.to_string();
        let address: Uri = url
            .parse()
            .with_context(|| format!("{} is not a valid URL", shown(&url)))?;
        let token = secrets::known_admin_token(settings)?.with_context(|| {
            format!(
                "asking {} needs the admin token: give --admin-token or HOMEPORT_ADMIN_TOKEN, or name the server's data directory with --data-dir",
                shown(&url)
            )
        })?;
        Ok(Self {
            pool: pool(&address, IDLE_MAX)?,
            shown: shown(&url),
            url,
            token: token.text,
        })
    }

    /// Asks, and reads the answer's JSON.
    pub(crate) async fn ask<T: DeserializeOwned>(
        &self,
        method: &str,
        path: &str,
        body: String,
    ) -> anyhow::Result<T> {
        let text = self.text(method, path, body).await?;
        serde_json::from_str(&text)
            .with_context(|| format!("{} does not answer like Homeport", self.shown))
    }

    /// Asks for something whose answer has no body, or one that nobody reads.
    pub(crate) async fn tell(&self, method: &str, path: &str) -> anyhow::Result<()> {
        self.text(method, path, String::new()).await.map(|_| ())
    }

    /// Asks for a file, and hands it over in parts as they come; the last is an error when the file is
    /// not whole. Only the beginning of the answer is waited for in a bounded time.
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
                    .map_err(|error| anyhow::Error::new(error).context("the file is not whole"))
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
        response.with_context(|| format!("asking {}", self.shown))
    }

    async fn in_time<T>(
        &self,
        asking: impl Future<Output = anyhow::Result<T>>,
    ) -> anyhow::Result<T> {
        let answer = tokio::time::timeout(TIMEOUT, asking).await;
        answer.with_context(|| format!("{} did not answer within {TIMEOUT:?}", self.shown))?
    }
}

/// The text of an answer.
async fn whole(response: Response<Incoming>) -> anyhow::Result<String> {
    let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX);
    let body = body.collect().await;
    let body = body.map_err(|error| anyhow!("the answer broke off: {error}"))?;
    String::from_utf8(body.to_bytes().into()).context("the answer is no text")
}
