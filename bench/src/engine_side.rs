//! The engine, through the store trait that Homeport's systems use.

use std::path::Path;
use std::sync::Arc;

use homeport_engine::{Engine, ManualClock, MasterKey, Options};
use homeport_item::expression::{Condition, KeyCondition, SortCondition, Update};
use homeport_item::{Item, Value};
use homeport_store::{Action, Get, Put, Query, Store, Transaction, Update as UpdateItem};

use crate::contestant::Contestant;
use crate::workload::{
    BATCHES, DEVICE_COUNT, DEVICES, MASTER_KEY, READINGS, Reading, START_MS, tables,
};

#[derive(Clone)]
pub(crate) struct EngineSide {
    engine: Engine,
}

impl EngineSide {
    /// Opens with the default options and a clock that stands still.
    pub(crate) async fn open(path: &Path) -> anyhow::Result<Self> {
        Self::open_with(path, None).await
    }

    /// The same with encrypted values.
    pub(crate) async fn open_sealed(path: &Path) -> anyhow::Result<Self> {
        Self::open_with(path, Some(MasterKey::parse(MASTER_KEY)?)).await
    }

    async fn open_with(path: &Path, master_key: Option<MasterKey>) -> anyhow::Result<Self> {
        let options = Options {
            clock: Arc::new(ManualClock::at_ms(START_MS)),
            master_key,
            ..Options::default()
        };
        let engine = Engine::open(path, options)?;
        engine.ensure_tables(&tables()).await?;
        Ok(Self { engine })
    }

    pub(crate) async fn compact(&self) -> anyhow::Result<()> {
        Ok(self.engine.compact().await?)
    }
}

impl Contestant for EngineSide {
    type Request = Transaction;

    fn request(&self, reading: Reading) -> Transaction {
        let marker = Put::new(BATCHES, reading.marker()).when(Condition::not_exists("batch_id"));
        let key = Item::new().with("hardware_id", reading.hardware_id());
        let seen = reading.last_seen_at();
        let update = Update::new()
            .set("last_seen_at", seen.clone())
            .set("gsi1sk", seen)
            .set("last_boot_id", reading.boot_id());
        Transaction::new(vec![
            Action::from(marker),
            Action::from(Put::new(READINGS, reading.item())),
            Action::from(UpdateItem::new(DEVICES, key, update)),
        ])
    }

    async fn register(&self) {
        for device in 0..DEVICE_COUNT {
            let item = Reading { device, step: 0 }.device_item();
            self.engine
                .put(Put::new(DEVICES, item))
                .await
                .expect("a device is registered");
        }
    }

    async fn write(&self, mut requests: Vec<Transaction>) {
        if requests.len() == 1 {
            let only = requests.pop().expect("there is one");
            self.engine
                .transact(only)
                .await
                .expect("a transaction holds");
        } else {
            for outcome in self.engine.transact_each(requests).await {
                outcome.expect("a transaction holds");
            }
        }
    }

    async fn get(&self, _caller: usize, reading: Reading, decoded: bool) -> bool {
        let key = Item::new()
            .with("hardware_id", reading.hardware_id())
            .with("ts_batch", reading.ts_batch());
        let request = Get::new(READINGS, key);
        if decoded {
            self.engine
                .get(request)
                .await
                .expect("a get works")
                .is_some()
        } else {
            self.engine
                .get_stored(&request)
                .expect("a get works")
                .is_some()
        }
    }

    async fn newest(&self, _caller: usize, device: u32, count: usize, decoded: bool) -> usize {
        let partition = crate::workload::hardware_id(device);
        let query = Query::new(READINGS, KeyCondition::new("hardware_id", partition))
            .descending()
            .limit(count);
        if decoded {
            self.engine
                .query(query)
                .await
                .expect("a query works")
                .items
                .len()
        } else {
            self.engine
                .query_stored(&query)
                .expect("a query works")
                .items
                .len()
        }
    }

    async fn range(&self, _caller: usize, first: Reading, count: usize, decoded: bool) -> usize {
        let from = SortCondition::GreaterOrEqual(Value::from(first.ts_batch()));
        let condition =
            KeyCondition::new("hardware_id", first.hardware_id()).with_sort("ts_batch", from);
        let mut found = 0;
        let mut start = None;
        loop {
            let query = Query::new(READINGS, condition.clone())
                .limit(count - found)
                .starting_after(start);
            let (page, next) = if decoded {
                let page = self.engine.query(query).await.expect("a query works");
                (page.items.len(), page.next)
            } else {
                let page = self.engine.query_stored(&query).expect("a query works");
                (page.items.len(), page.next)
            };
            found += page;
            start = next;
            if found >= count || start.is_none() {
                return found;
            }
        }
    }
}
