//! A simulated stream with events that no implementation of DynamoDB produces on demand: shard
//! splits, expiring iterators, trimmed records.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::script::{Answer, error, server};

#[derive(Clone, Default)]
pub(crate) struct Model(Arc<Mutex<State>>);

#[derive(Default)]
pub(crate) struct State {
    pub(crate) label: String,
    pub(crate) shards: Vec<Shard>,
    iterators: HashMap<String, (String, usize)>,
    iterators_made: usize,
    records_made: usize,
    pub(crate) iterators_expired: usize,
}

pub(crate) struct Shard {
    pub(crate) id: String,
    parent: Option<String>,
    is_closed: bool,
    /// Number, item and value.
    records: Vec<(usize, String, String)>,
    trimmed: usize,
}

impl Model {
    pub(crate) fn new() -> Self {
        let model = Self::default();
        model.with(|state| state.label = "first".to_owned());
        model.open("root", None);
        model
    }

    pub(crate) fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.0.lock().expect("no panic"))
    }

    pub(crate) fn open(&self, id: &str, parent: Option<&str>) {
        self.with(|state| {
            state.shards.push(Shard {
                id: id.to_owned(),
                parent: parent.map(str::to_owned),
                is_closed: false,
                records: Vec::new(),
                trimmed: 0,
            });
        });
    }

    /// Closes a shard, which its children continue.
    pub(crate) fn split(&self, id: &str, children: &[&str]) {
        self.with(|state| state.shard(id).is_closed = true);
        for child in children {
            self.open(child, Some(id));
        }
    }

    pub(crate) fn write(&self, shard: &str, item: &str, value: &str) {
        self.with(|state| {
            state.records_made += 1;
            let record = (state.records_made, item.to_owned(), value.to_owned());
            state.shard(shard).records.push(record);
        });
    }

    /// Deletes the current records of a shard.
    pub(crate) fn trim(&self, shard: &str) {
        self.with(|state| {
            let shard = state.shard(shard);
            shard.trimmed = shard.records.len();
        });
    }

    pub(crate) fn expire_iterators(&self) {
        self.with(|state| state.iterators.clear());
    }

    pub(crate) async fn serve(&self) -> String {
        let model = self.clone();
        server::serve(move |operation, body| {
            let body = serde_json::from_str(&body).expect("JSON");
            model.with(|state| state.answer(&operation, &body))
        })
        .await
    }
}

impl State {
    fn shard(&mut self, id: &str) -> &mut Shard {
        let mut shards = self.shards.iter_mut();
        shards.find(|shard| shard.id == id).expect("a shard")
    }

    fn answer(&mut self, operation: &str, body: &Value) -> Answer {
        let answer = match operation {
            "DescribeTable" => self.table(),
            "DescribeStream" => self.stream(body),
            "GetShardIterator" => self.iterator(body),
            "GetRecords" => self.records(body),
            _ => Err("UnknownOperationException"),
        };
        match answer {
            Ok(answer) => Some((200, answer.to_string())),
            Err(code) => error(400, code),
        }
    }

    fn arn(&self) -> String {
        format!("arn:aws:dynamodb:here:1:table/things/stream/{}", self.label)
    }

    fn table(&self) -> Result<Value, &'static str> {
        let mut table = json!({
            "TableName": "things", "TableStatus": "ACTIVE",
            "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
            "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
        });
        match self.label.as_str() {
            "no table" => return Err("ResourceNotFoundException"),
            "no stream" => {}
            _ => {
                table["StreamSpecification"] =
                    json!({"StreamEnabled": true, "StreamViewType": "NEW_IMAGE"});
                table["LatestStreamArn"] = json!(self.arn());
            }
        }
        Ok(json!({ "Table": table }))
    }

    /// Two shards per page, which forces paging.
    fn stream(&self, body: &Value) -> Result<Value, &'static str> {
        if body["StreamArn"] != json!(self.arn()) {
            return Err("ResourceNotFoundException");
        }
        let start = body["ExclusiveStartShardId"].as_str();
        let first = start.map_or(0, |start| {
            let place = self.shards.iter().position(|shard| shard.id == start);
            place.expect("a shard of the page before") + 1
        });
        let page = &self.shards[first..self.shards.len().min(first + 2)];
        let shards: Vec<Value> = page
            .iter()
            .map(|shard| match &shard.parent {
                Some(parent) => json!({"ShardId": shard.id, "ParentShardId": parent}),
                None => json!({"ShardId": shard.id}),
            })
            .collect();
        let mut described = json!({
            "StreamArn": self.arn(), "StreamStatus": "ENABLED", "Shards": shards,
        });
        if first + 2 < self.shards.len() {
            described["LastEvaluatedShardId"] = json!(self.shards[first + 1].id);
        }
        Ok(json!({ "StreamDescription": described }))
    }

    fn iterator(&mut self, body: &Value) -> Result<Value, &'static str> {
        let id = body["ShardId"].as_str().expect("a shard").to_owned();
        if self.shards.iter().all(|shard| shard.id != id) {
            return Err("ResourceNotFoundException");
        }
        let shard = self.shard(&id);
        let place = match body["ShardIteratorType"].as_str().expect("a type") {
            "TRIM_HORIZON" => shard.trimmed,
            "LATEST" => shard.records.len(),
            "AFTER_SEQUENCE_NUMBER" => {
                let number: usize = body["SequenceNumber"]
                    .as_str()
                    .and_then(|number| number.parse().ok())
                    .expect("a number");
                let mut records = shard.records.iter();
                let place = records.position(|(of, ..)| *of == number).expect("known") + 1;
                if place <= shard.trimmed {
                    return Err("TrimmedDataAccessException");
                }
                place
            }
            other => panic!("{other}"),
        };
        Ok(json!({ "ShardIterator": self.make_iterator(id, place) }))
    }

    fn make_iterator(&mut self, shard: String, place: usize) -> String {
        self.iterators_made += 1;
        let iterator = format!("iterator-{}", self.iterators_made);
        self.iterators.insert(iterator.clone(), (shard, place));
        iterator
    }

    fn records(&mut self, body: &Value) -> Result<Value, &'static str> {
        let iterator = body["ShardIterator"].as_str().expect("an iterator");
        let Some((id, place)) = self.iterators.get(iterator).cloned() else {
            self.iterators_expired += 1;
            return Err("ExpiredIteratorException");
        };
        if self.shards.iter().all(|shard| shard.id != id) {
            return Err("TrimmedDataAccessException");
        }
        let limit = body["Limit"].as_u64().expect("a limit");
        let limit = usize::try_from(limit).expect("a limit");
        let shard = self.shard(&id);
        if place < shard.trimmed {
            return Err("TrimmedDataAccessException");
        }
        let end = shard.records.len().min(place + limit);
        let is_at_end = shard.is_closed && end == shard.records.len();
        let records: Vec<Value> = shard.records[place..end]
            .iter()
            .map(|(number, item, value)| {
                let key = json!({"id": {"S": item}});
                let image = json!({"id": {"S": item}, "value": {"S": value}});
                json!({"eventName": "INSERT", "dynamodb": {
                    "ApproximateCreationDateTime": 1_800_000_000, "Keys": key,
                    "NewImage": image, "SequenceNumber": number.to_string(),
                }})
            })
            .collect();
        let mut answer = json!({ "Records": records });
        if !is_at_end {
            answer["NextShardIterator"] = json!(self.make_iterator(id, end));
        }
        Ok(answer)
    }
}
