//! Keys through the HTTP interface of a server.

use homeport_server::{ApiKeyList, CreateApiKey, CreatedApiKey, RevokedApiKey};
use homeport_systems::api_keys::KeyId;

use crate::config::{Settings, Url};
use crate::server_client::ServerClient;

const PATH: &str = "/v1/api-keys";

/// The keys of a server.
pub(super) struct ServerKeys(ServerClient);

impl ServerKeys {
    pub(super) fn new(url: &Url, settings: &Settings) -> anyhow::Result<Self> {
        ServerClient::new(url, settings).map(Self)
    }

    pub(super) async fn create(&self, new: &CreateApiKey) -> anyhow::Result<CreatedApiKey> {
        let body = serde_json::to_string(new)?;
        self.0.ask("POST", PATH, body).await
    }

    pub(super) async fn page(
        &self,
        limit: usize,
        cursor: Option<&str>,
    ) -> anyhow::Result<ApiKeyList> {
        let mut path = format!("{PATH}?limit={limit}");
        if let Some(cursor) = cursor {
            // Cursors are made of characters that need no escape.
            path.push_str(&format!("&cursor={cursor}"));
        }
        self.0.ask("GET", &path, String::new()).await
    }

    pub(super) async fn revoke(&self, key_id: KeyId) -> anyhow::Result<RevokedApiKey> {
        let path = format!("{PATH}/{key_id}");
        self.0.ask("DELETE", &path, String::new()).await
    }
}
