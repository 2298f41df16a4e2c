//! API keys through a server's HTTP interface.

use homeport_server::{ApiKeyList, CreateApiKey, CreatedApiKey, RevokedApiKey};
use homeport_systems::api_keys::KeyId;

use crate::client::server_client::ServerClient;

const PATH: &str = "/v1/api-keys";

/// The API keys of a server.
pub(super) struct ServerKeys(pub(super) ServerClient);

impl ServerKeys {
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
            path.push_str(&format!("&cursor={cursor}"));
        }
        self.0.ask("GET", &path, String::new()).await
    }

    pub(super) async fn revoke(&self, key_id: KeyId) -> anyhow::Result<RevokedApiKey> {
        let path = format!("{PATH}/{key_id}");
        self.0.ask("DELETE", &path, String::new()).await
    }
}
