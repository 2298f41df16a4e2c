//! API keys of the devices: the given one, or keys created for the run.

use anyhow::{Context as _, bail};
use hyper::Method;
use serde::Deserialize;

use crate::Plan;
use crate::connection::ask_until_answered;
use crate::connection::{Client, Credential};
use crate::fleets::Call;
use crate::random::SeededRandom;
use crate::settings::SimulateSettings;
use crate::stderr::note;

/// Devices that share a key, as on one site: the server limits the rate of each key.
const DEVICES_PER_KEY: u32 = 500;
const DESCRIPTION: &str = "simulated fleet";

pub(crate) struct Keys {
    keys: Vec<Credential>,
    operator: Option<Credential>,
    /// Ids of the keys that this run created.
    ids: Vec<String>,
}

#[derive(Deserialize)]
struct CreatedKey {
    api_key: String,
    key_id: String,
}

impl Keys {
    pub(crate) async fn obtain(
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
            bail!("no credential: give --admin-token or --api-key");
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

    /// The API key of a device.
    pub(crate) fn of(&self, device: u32) -> &Credential {
        let at = (device / DEVICES_PER_KEY) as usize % self.keys.len();
        &self.keys[at]
    }

    /// The credential for reading back: the admin token, whose rate is not limited, if there is one.
    pub(crate) fn for_reading(&self, device: u32) -> &Credential {
        self.operator.as_ref().unwrap_or_else(|| self.of(device))
    }

    /// The admin token, which may create resources that devices only use.
    pub(crate) fn operator(&self) -> Option<&Credential> {
        self.operator.as_ref()
    }

    /// Revokes the keys of this run, and reports those that could not be revoked.
    pub(crate) async fn revoke(&self, client: &Client) {
        let Some(operator) = &self.operator else {
            return;
        };
        for id in &self.ids {
            let call = Call::new(Method::DELETE, format!("/v1/api-keys/{id}"), None);
            let permit = client.permit().await;
            if client.send(&permit, call, operator).await.is_err() {
                note(format_args!(
                    "could not revoke the API key {id}; revoke it with `homeport keys revoke {id}`"
                ));
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
    let mut random = SeededRandom::new([plan.seed]);
    let body = serde_json::json!({"description": DESCRIPTION, "system": system, "all": true});
    let call = || Call::new(Method::POST, "/v1/api-keys", Some(body.to_string()));
    let answer = ask_until_answered(client, operator, plan, &mut random, call).await;
    let answer = answer.context("creating an API key")?;
    serde_json::from_slice(&answer).context("reading the response to creating an API key")
}
