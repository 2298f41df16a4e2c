//! The keys of the devices: the one that was given, or some that are made for the run.

use anyhow::{Context as _, bail};
use hyper::Method;
use serde::Deserialize;

use super::Plan;
use super::client::{Client, Credential};
use super::dice::Dice;
use super::fleet::Call;
use super::patient;
use super::settings::SimulateSettings;

/// As many devices share a key, as those of one site would: the server limits the rate of each key.
const DEVICES_PER_KEY: u32 = 500;
const DESCRIPTION: &str = "simulated fleet";

pub(super) struct Keys {
    keys: Vec<Credential>,
    operator: Option<Credential>,
    /// Of the keys that were made here.
    ids: Vec<String>,
}

#[derive(Deserialize)]
struct CreatedKey {
    api_key: String,
    key_id: String,
}

impl Keys {
    pub(super) async fn obtain(
        client: &Client,
        settings: &SimulateSettings,
        system: &str,
        plan: &Plan,
    ) -> anyhow::Result<Self> {
        if let Some(key) = &settings.api_key {
            return Ok(Self {
                keys: vec![Credential::api_key(key)?],
                operator: None,
                ids: Vec::new(),
            });
        }
        let Some(token) = &settings.admin_token else {
            bail!("give --admin-token or --api-key");
        };
        let operator = Credential::bearer(token)?;
        let mut keys = Vec::new();
        let mut ids = Vec::new();
        for _ in 0..plan.devices.div_ceil(DEVICES_PER_KEY) {
            let created = create(client, &operator, system, plan).await?;
            keys.push(Credential::api_key(&created.api_key)?);
            ids.push(created.key_id);
        }
        Ok(Self {
            keys,
            operator: Some(operator),
            ids,
        })
    }

    /// The key of a device.
    pub(super) fn of(&self, device: u32) -> &Credential {
        let at = (device / DEVICES_PER_KEY) as usize % self.keys.len();
        &self.keys[at]
    }

    /// What to read with: operators are not held back.
    pub(super) fn for_reading(&self, device: u32) -> &Credential {
        self.operator.as_ref().unwrap_or_else(|| self.of(device))
    }

    /// Who may make what devices only use.
    pub(super) fn operator(&self) -> Option<&Credential> {
        self.operator.as_ref()
    }

    /// Revokes what was made. A key that stays because the server is gone is named.
    pub(super) async fn give_back(&self, client: &Client) {
        let Some(operator) = &self.operator else {
            return;
        };
        for id in &self.ids {
            let call = Call::new(Method::DELETE, format!("/v1/api-keys/{id}"), None);
            let permit = client.permit().await;
            if client.send(&permit, call, operator).await.is_err() {
                note!("the key {id} could not be revoked");
            }
        }
    }
}

async fn create(
    client: &Client,
    operator: &Credential,
    system: &str,
    plan: &Plan,
) -> anyhow::Result<CreatedKey> {
    let mut dice = Dice::new([plan.seed]);
    let body = serde_json::json!({"description": DESCRIPTION, "system": system});
    let call = || Call::new(Method::POST, "/v1/api-keys", Some(body.to_string()));
    let answer = patient::ask(client, operator, plan, &mut dice, call).await;
    let answer = answer.context("making a key")?;
    serde_json::from_slice(&answer).context("reading the answer about a key")
}
