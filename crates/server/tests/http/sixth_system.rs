//! A sixth system that only these tests know. Its source is all that the fleet, the live feed, exports, alerts and
//! the console's routes need.

use std::sync::Arc;

use async_trait::async_trait;
use homeport_item::expression::{KeyCondition, SortCondition};
use homeport_item::schema::TableSchema;
use homeport_item::{Item, KeyKind, Value as Attribute};
use homeport_store::{Put, Query, Scan, Store};
use homeport_systems::fleet::{
    DeviceList, DeviceSource, DeviceSummary, DeviceView, Entry, EntryType, FleetError,
    HistoryRange, LatestValue, QueryReader, Row, RowReader, SYSTEMS, Sample, System, SystemName,
    visit_members,
};
use homeport_systems::time::EpochMillis;
use serde_json::{Value, json};

use crate::console_live::Listener;
use crate::support::{NOW_MS, Server};

const TABLE: &str = "meter_readings";

static METERS: System = System {
    name: SystemName::new("meters"),
    report_every_secs: 60,
    has_values: true,
    alert_reaction: Some("alerts-meters"),
    time_of,
    connect: |deps| Arc::new(Meters(Arc::clone(&deps.store))),
};

/// Water meters: readings with a level, and no other table.
struct Meters(Arc<dyn Store>);

fn table() -> TableSchema {
    TableSchema::new(TABLE, "meter", KeyKind::S).with_sort("at", KeyKind::N)
}

fn meter_of(item: &Item) -> Option<String> {
    item.get("meter")?.as_str().map(str::to_owned)
}

fn time_of(item: &Item) -> Option<EpochMillis> {
    item.get("at")?.as_number()?.to_i64().map(EpochMillis)
}

fn summary(item: &Item) -> Option<DeviceSummary> {
    Some(DeviceSummary {
        last_seen: time_of(item),
        ..DeviceSummary::new(&METERS.name, meter_of(item)?)
    })
}

#[async_trait]
impl DeviceSource for Meters {
    fn system(&self) -> &'static System {
        &METERS
    }

    fn store(&self) -> &Arc<dyn Store> {
        &self.0
    }

    fn row_table(&self) -> TableSchema {
        table()
    }

    fn devices_of(&self, item: &Item) -> Vec<String> {
        meter_of(item).into_iter().collect()
    }

    async fn collect_devices(&self, devices: &mut DeviceList) -> Result<(), FleetError> {
        // Each meter has one reading here.
        devices
            .add_scanned(&*self.0, Scan::new(TABLE), summary)
            .await
    }

    async fn device_view(&self, id: &str) -> Result<DeviceView, FleetError> {
        let newest = self.newest_item(id).await?;
        let newest = newest.ok_or(FleetError::DeviceMissing)?;
        let at = time_of(&newest).ok_or(FleetError::DeviceMissing)?;
        let mut latest = Vec::new();
        self.samples(&Row::new(at, newest.clone()), &mut |sample| {
            latest.push(LatestValue::new(&sample, at));
        });
        Ok(DeviceView {
            summary: summary(&newest).ok_or(FleetError::DeviceMissing)?,
            identity: Item::new().with("meter", id),
            state: newest,
            latest,
        })
    }

    async fn history(
        &self,
        id: &str,
        range: &HistoryRange,
    ) -> Result<Vec<Box<dyn RowReader>>, FleetError> {
        let between = SortCondition::Between(range.from.0.into(), range.to.0.into());
        let query = Query::new(
            TABLE,
            KeyCondition::new("meter", id).with_sort("at", between),
        );
        Ok(QueryReader::new(self, query, range).alone())
    }

    fn samples(&self, row: &Row, visit: &mut dyn FnMut(Sample<'_>)) {
        visit_members(row.item.attributes(), &["meter", "at"], visit);
    }

    fn entry(&self, row: &Row) -> Option<Entry> {
        Some(Entry {
            id: format!("{TABLE}/{}/{}", meter_of(&row.item)?, row.at.0),
            at: row.at,
            kind: EntryType::Telemetry,
            title: "Meter reading".to_owned(),
            table: TABLE.to_owned(),
            item: row.item.clone(),
        })
    }
}

#[tokio::test]
async fn sixth_system_needs_only_its_source() {
    let systems = SYSTEMS.into_iter().chain([&METERS]).collect();
    let server = Server::start_with_systems(systems).await;
    server
        .engine
        .ensure_tables(&[table()])
        .await
        .expect("a table");
    let get = async |path: &str| {
        let answer = server.as_admin("GET", path, Value::Null).await;
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        answer.body
    };
    let low = json!({"name": "Low", "source": "meters", "condition": {"threshold":
        {"attribute": "level_mm", "side": "below", "raise": 5, "clear": 7}}});
    let made = server.as_admin("POST", "/v1/alerts/definitions", low).await;
    assert_eq!(made.status, 201, "{made:?}");
    let mut live = Listener::open(&server, "?system=meters", None).await;

    let reading = Item::new().with("meter", "m-1").with("at", NOW_MS);
    let reading = reading.with("level_mm", Attribute::from(3));
    let put = server.engine.put(Put::new(TABLE, reading));
    put.await.expect("stored");

    let heard = live.next().await.data;
    assert_eq!(heard["title"], "Meter reading");
    assert_eq!(
        (&heard["system"], &heard["device"]),
        (&json!("meters"), &json!("m-1"))
    );
    let list = get("/v1/devices?system=meters").await;
    assert_eq!(list["devices"][0]["id"], "m-1");
    assert_eq!(list["devices"][0]["health"], "online");
    assert_eq!(get("/v1/overview").await["systems"][5]["devices"], 1);
    let view = get("/v1/devices/meters/m-1").await;
    assert_eq!(view["latest"][0]["value"], 3);
    let path = format!("/v1/devices/meters/m-1/series?to={}", NOW_MS + 1);
    assert_eq!(get(&path).await["series"][0]["unit"], "mm");
    let file = get("/v1/export/meters").await;
    let line = "meters,m-1,2027-01-15T08:00:00.000Z,level_mm,3,mm\r\n";
    assert_eq!(file, format!("system,device,at,name,value,unit\r\n{line}"));
    let reaction = server.alerts.reaction(&METERS.name).expect("watched");
    let reactions = server.alerts.reactions().expect("a feed");
    reactions.catch_up(&reaction).await.expect("judged");
    assert_eq!(get("/v1/alerts").await["alerts"][0]["source"], "meters");
    let timeline = get("/v1/devices/meters/m-1/timeline").await;
    let titles = timeline["entries"].as_array().expect("entries").iter();
    let titles: Vec<&Value> = titles.map(|entry| &entry["title"]).collect();
    assert_eq!(
        titles,
        [
            "Meter reading",
            "Alert raised: Low (warning), level_mm is 3, below 5"
        ]
    );
}
