//! Backups of the bank table while it is written to. Each must be consistent at one moment.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::json;

use super::bank::{Bank, TABLE as BANK};
use super::{OperationResult, Problem, Scope, Workload, bank_audit, lock, violation, wait_active};
use crate::clients::{Clients, Reply};
use homeport_simulate::SeededRandom;

const LANES: usize = 1;
const KEPT_MAX: usize = 4;

pub(super) struct Backups {
    bank: Arc<Bank>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    next: u32,
    /// Complete backups.
    backups: Vec<Backup>,
}

#[derive(Debug, Clone)]
struct Backup {
    arn: String,
    /// Transfers that were acknowledged before the backup was requested.
    transfers: BTreeSet<String>,
}

impl Backups {
    pub(super) fn new(bank: Arc<Bank>) -> Self {
        Self {
            bank,
            state: Mutex::default(),
        }
    }

    fn next_name(&self, prefix: &str) -> String {
        let mut state = lock(&self.state);
        state.next += 1;
        format!("torture-{prefix}-{}", state.next)
    }

    async fn back_up(&self, clients: &mut Clients) -> Result<OperationResult, String> {
        let name = self.next_name("backup");
        let transfers = self.bank.acknowledged();
        let request = json!({"TableName": BANK, "BackupName": name});
        let answer = match clients.dynamodb("CreateBackup", &request).await {
            Reply::Done(answer) => answer,
            Reply::Refused(..) => return Ok(OperationResult::Refused),
            Reply::Unknown(_) => return Ok(OperationResult::Unknown),
        };
        let arn = answer["BackupDetails"]["BackupArn"].as_str();
        let Some(arn) = arn.map(str::to_owned) else {
            return Err(format!("backups: no ARN in {answer}"));
        };
        for _ in 0..super::WAIT_POLLS_MAX {
            match status(clients, &arn).await {
                Ok(status) if status == "AVAILABLE" => {
                    lock(&self.state).backups.push(Backup { arn, transfers });
                    return Ok(OperationResult::Acknowledged);
                }
                Ok(_) => tokio::time::sleep(super::WAIT_POLL).await,
                // A backup that a crash interrupted leaves nothing.
                Err(_) => return Ok(OperationResult::Unknown),
            }
        }
        Ok(OperationResult::Unknown)
    }

    /// Restores a backup, audits it, and deletes the table.
    async fn restore(
        &self,
        clients: &mut Clients,
        backup: &Backup,
    ) -> Result<OperationResult, String> {
        let name = self.next_name("restored");
        match restore_and_audit(clients, backup, &name).await {
            Ok(()) => {}
            Err(Problem::Violation(why)) => return Err(why),
            Err(Problem::Unreadable(_)) => return Ok(OperationResult::Unknown),
        }
        let request = json!({"TableName": name});
        let deleted = clients.dynamodb("DeleteTable", &request).await.done();
        Ok(match deleted {
            Ok(_) => OperationResult::Acknowledged,
            Err(_) => OperationResult::Unknown,
        })
    }

    async fn delete(&self, clients: &mut Clients, arn: &str) -> OperationResult {
        lock(&self.state).backups.retain(|kept| kept.arn != arn);
        let request = json!({"BackupArn": arn});
        match clients.dynamodb("DeleteBackup", &request).await {
            Reply::Done(_) => OperationResult::Acknowledged,
            Reply::Refused(..) => OperationResult::Refused,
            Reply::Unknown(_) => OperationResult::Unknown,
        }
    }
}

async fn status(clients: &mut Clients, arn: &str) -> Result<String, String> {
    let request = json!({"BackupArn": arn});
    let answer = clients.dynamodb("DescribeBackup", &request).await.done()?;
    let details = &answer["BackupDescription"]["BackupDetails"];
    Ok(details["BackupStatus"]
        .as_str()
        .unwrap_or_default()
        .to_owned())
}

/// Audits a restored backup, which must contain every transfer from before the backup.
async fn restore_and_audit(
    clients: &mut Clients,
    backup: &Backup,
    name: &str,
) -> Result<(), Problem> {
    let arn = &backup.arn;
    let request = json!({"TargetTableName": name, "BackupArn": arn});
    let restore = clients.dynamodb("RestoreTableFromBackup", &request).await;
    restore.done()?;
    wait_active(clients, name).await?;
    let restored = bank_audit::audit(clients, name).await?;
    let mut missing = backup.transfers.difference(&restored);
    match missing.next() {
        Some(first) => violation(format!(
            "backups: {arn} lacks {} transfers that were acknowledged before it, {first} first",
            missing.count() + 1
        )),
        None => Ok(()),
    }
}

#[async_trait]
impl Workload for Backups {
    fn name(&self) -> &'static str {
        "backups"
    }

    fn lanes(&self) -> usize {
        LANES
    }

    async fn prepare(&self, _: &mut Clients) -> Result<(), String> {
        Ok(())
    }

    async fn write(
        &self,
        _: usize,
        clients: &mut Clients,
        random: &mut SeededRandom,
    ) -> Result<OperationResult, String> {
        let backups = lock(&self.state).backups.clone();
        if backups.len() > KEPT_MAX {
            return Ok(self.delete(clients, &backups[0].arn).await);
        }
        if backups.is_empty() || random.once_in(2) {
            return self.back_up(clients).await;
        }
        let backup: &Backup = random.pick(&backups);
        self.restore(clients, backup).await
    }

    async fn verify(&self, clients: &mut Clients, scope: Scope) -> Result<(), Problem> {
        let backups = lock(&self.state).backups.clone();
        for backup in &backups {
            let arn = &backup.arn;
            let request = json!({"BackupArn": arn});
            let reply = clients.dynamodb("DescribeBackup", &request).await;
            if reply.is_refused_with("BackupNotFoundException") {
                return violation(format!("backups: {arn} is missing"));
            }
            reply.done()?;
            // A copy tests damage, which only a restore would detect.
            if scope == Scope::Copy {
                // A unique name, because a restore may be repeated.
                let name = self.next_name("copy");
                restore_and_audit(clients, backup, &name).await?;
            }
        }
        Ok(())
    }
}
