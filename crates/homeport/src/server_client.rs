//! A server's HTTP interface, as commands ask it.

use std::io::Read as _;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;
use ureq::http::Request;

use crate::config::{Settings, Url};
use crate::secrets;

const TIMEOUT: Duration = Duration::from_secs(30);
/// Larger answers are none of ours: a page of a thousand keys is far below.
const ANSWER_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Parts of a file that wait to be written, and how large each is.
const PARTS_WAITING_MAX: usize = 8;
const PART_BYTES: usize = 64 * 1024;

/// A server, asked as an operator.
pub(crate) struct ServerClient {
    agent: ureq::Agent,
    url: String,
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
        if url.starts_with("https://") {
            bail!("{url}: this command speaks http only; run it on the server's own machine");
        }
        let token = secrets::known_admin_token(settings)?.with_context(|| {
            format!(
                "asking {url} needs the admin token: give --admin-token or HOMEPORT_ADMIN_TOKEN, or name the server's data directory with --data-dir"
            )
        })?;
        let agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(TIMEOUT))
            // IMPORTANT: the token goes to the server that was named and to nobody else.
            .proxy(None)
            .max_redirects(0)
            .build()
            .into();
        Ok(Self {
            agent,
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
            .with_context(|| format!("{} does not answer like Homeport", self.url))
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
    ) -> anyhow::Result<mpsc::Receiver<anyhow::Result<Vec<u8>>>> {
        let request = Request::builder()
            .method("GET")
            .uri(format!("{}{path}", self.url))
            .header("authorization", format!("Bearer {}", self.token))
            .body(String::new())?;
        let agent: ureq::Agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_connect(Some(TIMEOUT))
            .timeout_recv_response(Some(TIMEOUT))
            // IMPORTANT: the token goes to the server that was named and to nobody else.
            .proxy(None)
            .max_redirects(0)
            .build()
            .into();
        let asking = tokio::task::spawn_blocking(move || agent.run(request));
        let mut response = asking
            .await?
            .with_context(|| format!("asking {}", self.url))?;
        if !response.status().is_success() {
            let status = response.status().as_u16();
            let text = response.body_mut().read_to_string().unwrap_or_default();
            return Err(self.refusal(status, &text));
        }
        let (sender, receiver) = mpsc::channel(PARTS_WAITING_MAX);
        tokio::task::spawn_blocking(move || {
            let mut reader = response.into_body().into_reader();
            loop {
                let mut part = vec![0; PART_BYTES];
                let part = match reader.read(&mut part) {
                    Ok(0) => return,
                    Ok(read) => {
                        part.truncate(read);
                        Ok(part)
                    }
                    Err(error) => Err(anyhow::Error::new(error).context("the file is not whole")),
                };
                let is_over = part.is_err();
                if sender.blocking_send(part).is_err() || is_over {
                    return;
                }
            }
        });
        Ok(receiver)
    }

    fn refusal(&self, status: u16, text: &str) -> anyhow::Error {
        match serde_json::from_str::<Problem>(text) {
            Ok(problem) => anyhow!("{}: {} ({})", self.url, problem.detail, problem.code),
            Err(_) => anyhow!("{} answered with status {status}", self.url),
        }
    }

    async fn text(&self, method: &str, path: &str, body: String) -> anyhow::Result<String> {
        let request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.url))
            .header("authorization", format!("Bearer {}", self.token))
            .header("content-type", "application/json")
            .body(body)?;
        let agent = self.agent.clone();
        let asking = tokio::task::spawn_blocking(move || -> anyhow::Result<(u16, String)> {
            let mut response = agent.run(request)?;
            let status = response.status().as_u16();
            let body = response.body_mut().with_config().limit(ANSWER_BYTES_MAX);
            Ok((status, body.read_to_string()?))
        });
        let (status, text) = asking
            .await?
            .with_context(|| format!("asking {}", self.url))?;
        if (200..300).contains(&status) {
            return Ok(text);
        }
        Err(self.refusal(status, &text))
    }
}
