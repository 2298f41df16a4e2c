//! Planning: statements are evaluated, and actions become writes, messages, requests and notifications.
//! Nothing is executed here, and nothing here waits.

use std::sync::Arc;

use bytes::Bytes;
use homeport_item::expression::Update;
use homeport_item::{Item, Number, Value as Attribute};
use homeport_rules::{Outcome, Payload, Template, Value, Variables, topic};
use homeport_store::{Action as StoreAction, Delete, Put, Update as UpdateRequest};

use super::failure::Failure;
use super::stats::Counted;
use crate::messages::{HOPS_MAX, Message, Properties, Publisher, REPUBLISHED_BYTES_MAX};
use crate::push::{self, UserId};
use crate::rules::definitions::compiled;
use crate::rules::definitions::compiled::{
    Action, Compiled, Headers, Http, KeyField, PutPayload, Republish, Sns, Target,
};
use crate::rules::definitions::registry::Registry;
use crate::rules::requests::outbox;
use crate::rules::requests::sns;
use crate::rules::{ACCOUNT_ID, RuleEngine};
use crate::telemetry;
use crate::time::{EpochMillis, TimeInFuture};

/// A larger expiry is not in seconds: it would be in the year 5138.
const TTL_SECS_MAX: i64 = 100_000_000_000;

/// The effects of one message.
#[derive(Default)]
pub(in crate::rules) struct Plan {
    pub(in crate::rules) writes: Vec<Write>,
    pub(in crate::rules) messages: Vec<Effect<Message>>,
    pub(in crate::rules) notices: Vec<Effect<Notice>>,
    /// The rules whose statements matched.
    pub(in crate::rules) matched: Vec<Arc<Compiled>>,
}

/// An effect of an action.
pub(in crate::rules) struct Effect<T> {
    pub(in crate::rules) by: ActionRef,
    pub(in crate::rules) what: T,
}

/// The action of a rule that an effect comes from.
#[derive(Clone)]
pub(in crate::rules) struct ActionRef {
    pub(in crate::rules) rule: Arc<Compiled>,
    pub(in crate::rules) action: &'static str,
    pub(in crate::rules) resource: String,
    /// An error action has no error action of its own.
    pub(in crate::rules) is_error_action: bool,
}

/// A write into a table.
pub(in crate::rules) struct Write {
    pub(in crate::rules) by: ActionRef,
    pub(in crate::rules) request: StoreAction,
    /// The key of the item, if the table's keys are known.
    pub(in crate::rules) key: Option<Item>,
    /// Set for telemetry with the time of its arrival, which must not replace another message.
    pub(in crate::rules) moving: Option<Moving>,
}

pub(in crate::rules) struct Moving {
    pub(in crate::rules) thing: String,
    pub(in crate::rules) at: i64,
    pub(in crate::rules) received: i64,
}

pub(in crate::rules) struct Notice {
    pub(in crate::rules) user: UserId,
    pub(in crate::rules) message: push::Message,
}

/// A message during planning.
struct Context<'a> {
    engine: &'a RuleEngine,
    message: &'a Message,
    seen: homeport_rules::Message<'a>,
    /// The variables of the statement, for its templates.
    variables: Variables,
}

impl RuleEngine {
    /// Plans the effects of all rules that match a message.
    pub(in crate::rules) fn plan(&self, registry: &Registry, message: &Message) -> Plan {
        let mut plan = Plan::default();
        let mut matching = registry.matching(&message.topic).peekable();
        if matching.peek().is_none() {
            return plan;
        }
        let payload = Payload::new(&message.payload);
        let trace_id = self.inner.traces.next();
        let mut context = Context {
            engine: self,
            message,
            seen: seen(message, &payload, &trace_id),
            variables: Variables::default(),
        };
        for rule in matching {
            match rule.statement.run(&context.seen, &mut random) {
                Ok((Outcome::NotMatched, _)) => rule.stats.count(Counted::NotMatched),
                Ok((Outcome::Matched(result), variables)) => {
                    context.variables = variables;
                    rule.stats.count(Counted::Matched);
                    plan.matched.push(Arc::clone(rule));
                    for action in &rule.actions {
                        let added = context.add(rule, action, false, &result, &mut plan);
                        if let Err(failure) = added {
                            self.fail(rule, message, failure, &mut plan);
                        }
                    }
                }
                Err(error) => {
                    rule.stats.count(Counted::Failed);
                    let failure = Failure::of_statement(message, with_sources(&error));
                    self.fail(rule, message, failure, &mut plan);
                }
            }
        }
        plan
    }

    /// Stores a failure and plans the rule's error action.
    pub(in crate::rules) fn fail(
        &self,
        rule: &Arc<Compiled>,
        message: &Message,
        failure: Failure,
        plan: &mut Plan,
    ) {
        if failure.action.is_some() {
            rule.stats.count(Counted::ActionsFailed);
        }
        if let Some(action) = &rule.error_action {
            self.plan_error(rule, action, message, &failure, plan);
        }
        rule.stats.keep(failure);
    }

    fn plan_error(
        &self,
        rule: &Arc<Compiled>,
        action: &Action,
        message: &Message,
        failure: &Failure,
        plan: &mut Plan,
    ) {
        let trace_id = self.inner.traces.next();
        let text = failure.to_error_message(&rule.name, message, &trace_id);
        let payload = Payload::new(&text);
        let context = Context {
            engine: self,
            message,
            seen: seen(message, &payload, &trace_id),
            variables: Variables::default(),
        };
        let result = payload.json().cloned().unwrap_or_default();
        if let Err(failure) = context.add(rule, action, true, &result, plan) {
            rule.stats.count(Counted::ActionsFailed);
            rule.stats.keep(failure);
        }
    }
}

impl Context<'_> {
    /// Adds the effect of an action to the plan.
    fn add(
        &self,
        rule: &Arc<Compiled>,
        action: &Action,
        is_error_action: bool,
        result: &Value,
        plan: &mut Plan,
    ) -> Result<(), Failure> {
        let failed = |resource: String, reason| {
            Failure::of_action(self.message, action.kind(), resource, reason)
        };
        let resource = self.resource(action);
        let by = ActionRef {
            rule: Arc::clone(rule),
            action: action.kind(),
            resource: resource.map_err(|reason| failed(String::new(), reason))?,
            is_error_action,
        };
        let resource = by.resource.clone();
        self.add_effect(by, action, result, plan)
            .map_err(|reason| failed(resource, reason))
    }

    /// What an action acts on: a table, a topic, a URL, an ARN or a user.
    fn resource(&self, action: &Action) -> Result<String, String> {
        match action {
            Action::PutItem(table) | Action::PutPayload(PutPayload { table, .. }) => {
                Ok(table.name.clone())
            }
            Action::Republish(action) => self.render(&action.topic),
            Action::Http(action) => self.render(&action.url),
            Action::Sns(action) => Ok(action.topic_arn.clone()),
            Action::Push(action) => self.render(&action.user_id),
        }
    }

    fn add_effect(
        &self,
        by: ActionRef,
        action: &Action,
        result: &Value,
        plan: &mut Plan,
    ) -> Result<(), String> {
        match action {
            Action::PutItem(table) => plan.writes.push(self.put_item(by, table, result)?),
            Action::PutPayload(action) => plan.writes.push(self.put_payload(by, action, result)?),
            Action::Http(action) => plan.writes.push(self.request(by, action, result)?),
            Action::Sns(action) => plan.writes.push(self.notification(by, action, result)?),
            Action::Republish(action) => {
                let what = self.republish(&by, action, result)?;
                plan.messages.push(Effect { by, what });
            }
            Action::Push(action) => {
                let what = self.notice(&by.resource, action)?;
                plan.notices.push(Effect { by, what });
            }
        }
        Ok(())
    }

    fn put_item(&self, by: ActionRef, table: &Target, result: &Value) -> Result<Write, String> {
        let mut item = result.to_item().map_err(|error| with_sources(&error))?;
        let key = Self::fit(&by, table, &mut item)?;
        if table.is_telemetry {
            self.check_time(&item)?;
            telemetry::schema::fit_severity(&mut item);
        }
        let moving = table.is_telemetry.then(|| self.moving(&item)).flatten();
        Ok(Write {
            by,
            request: Put::new(&table.name, item).into(),
            key,
            moving,
        })
    }

    /// Rejects an item of telemetry whose time is too far ahead.
    fn check_time(&self, item: &Item) -> Result<(), String> {
        let at = item.get(telemetry::schema::TIMESTAMP);
        let Some(at) = at.and_then(|at| at.as_number()?.to_i64()) else {
            return Ok(());
        };
        let limit = self.engine.inner.future_limit;
        let checked = limit.check(EpochMillis(at), self.message.received_at);
        checked.map_err(|error| format!("{}: {error}", TimeInFuture::CODE))
    }

    /// Validates an item against its table; returns its key.
    fn fit(by: &ActionRef, table: &Target, item: &mut Item) -> Result<Option<Item>, String> {
        let Some(schema) = &table.schema else {
            return Ok(None);
        };
        schema.key.values(item).map_err(|error| error.to_string())?;
        if let Some(attribute) = &schema.ttl_attribute
            && let Some(secs) = seconds(item.get(attribute))
        {
            item.insert(attribute.as_str(), secs);
            if by.rule.stats.note_ttl_in_millis() {
                tracing::warn!(
                    rule = %by.rule.name,
                    table = table.name,
                    "an expiry in milliseconds is stored in seconds"
                );
            }
        }
        let attributes = schema.key.attributes();
        let key = attributes.filter_map(|attribute| {
            let value = item.get(&attribute.name)?;
            Some((attribute.name.clone(), value.clone()))
        });
        Ok(Some(key.collect()))
    }

    /// Allows moving an item of telemetry with the time of its arrival. A time from the device is
    /// kept.
    fn moving(&self, item: &Item) -> Option<Moving> {
        let at = item.get(telemetry::schema::TIMESTAMP)?.as_number()?;
        let received = self.message.received_at.0;
        let thing = item.get(telemetry::schema::THING_NAME)?.as_str()?;
        (*at == Number::from(received)).then(|| Moving {
            thing: thing.to_owned(),
            at: received,
            received,
        })
    }

    fn put_payload(
        &self,
        by: ActionRef,
        action: &PutPayload,
        result: &Value,
    ) -> Result<Write, String> {
        let mut key = Item::new();
        for field in std::iter::once(&action.hash).chain(&action.range) {
            key.insert(field.name.as_str(), self.key_value(field)?);
        }
        let operation = action.operation.as_ref();
        let operation = operation
            .map(|template| self.render(template))
            .transpose()?;
        let table = &action.table;
        let payload = || result.to_attribute().map_err(|error| with_sources(&error));
        let request: StoreAction = match operation.as_deref() {
            None | Some("INSERT") => {
                let item = key.clone().with(action.payload_field.as_str(), payload()?);
                Put::new(&table.name, item).into()
            }
            Some("UPDATE") => {
                let update = Update::new().set(action.payload_field.as_str(), payload()?);
                UpdateRequest::new(&table.name, key.clone(), update).into()
            }
            Some("DELETE") => Delete::new(&table.name, key.clone()).into(),
            Some(other) => {
                return Err(format!(
                    "the operation is {other:?}, not INSERT, UPDATE or DELETE"
                ));
            }
        };
        if let Some(schema) = &table.schema {
            let checked = schema.key.exact_values(&key);
            checked.map_err(|error| error.to_string())?;
        }
        Ok(Write {
            by,
            request,
            key: Some(key),
            moving: None,
        })
    }

    fn key_value(&self, field: &KeyField) -> Result<Attribute, String> {
        let text = self.render(&field.value)?;
        if !field.is_number {
            return Ok(text.into());
        }
        let number: Number = text
            .parse()
            .map_err(|_| format!("{} is {text:?}, not a number", field.name))?;
        Ok(number.into())
    }

    fn republish(
        &self,
        by: &ActionRef,
        action: &Republish,
        result: &Value,
    ) -> Result<Message, String> {
        let topic = &by.resource;
        if self.message.hops >= HOPS_MAX {
            return Err(format!(
                "the message was republished {HOPS_MAX} times already: the rules form a loop"
            ));
        }
        topic::check_name(topic).map_err(|error| error.to_string())?;
        if topic.starts_with('$') {
            return Err("topics that begin with $ are reserved for the server".to_owned());
        }
        let republished = Message {
            topic: topic.clone(),
            payload: bytes(result),
            delivery: action.delivery,
            retain: false,
            publisher: Publisher {
                client_id: None,
                principal: Some(format!("rule:{}", by.rule.name)),
            },
            received_at: self.engine.now(),
            properties: self.properties(&action.headers)?,
            hops: self.message.hops + 1,
        };
        if republished.size() > REPUBLISHED_BYTES_MAX {
            return Err(format!(
                "the message is larger than {REPUBLISHED_BYTES_MAX} bytes; select fewer attributes"
            ));
        }
        Ok(republished)
    }

    fn properties(&self, headers: &Headers) -> Result<Properties, String> {
        let one =
            |template: &Option<Template>| template.as_ref().map(|one| self.render(one)).transpose();
        let expires_after_secs = one(&headers.message_expiry)?.map(|text| {
            let secs = text.parse();
            secs.map_err(|_| format!("messageExpiry is {text:?}, not a number of seconds"))
        });
        let user = headers.user_properties.iter();
        let user = user.map(|(key, value)| Ok((self.render(key)?, self.render(value)?)));
        let indicator = one(&headers.payload_format_indicator)?;
        Ok(Properties {
            content_type: one(&headers.content_type)?,
            response_topic: one(&headers.response_topic)?,
            correlation_data: one(&headers.correlation_data)?.map(Bytes::from),
            payload_is_text: matches!(indicator.as_deref(), Some("1" | "UTF8_DATA")),
            expires_after_secs: expires_after_secs.transpose()?,
            user: user.collect::<Result<_, String>>()?,
        })
    }

    fn request(&self, by: ActionRef, action: &Http, result: &Value) -> Result<Write, String> {
        let headers = action.headers.iter();
        let headers = headers.map(|(name, value)| Ok((name.clone(), self.render(value)?)));
        let headers = headers.collect::<Result<_, String>>()?;
        let url = by.resource.clone();
        self.post(by, &url, headers, &bytes(result))
    }

    /// A notification in the format of SNS.
    fn notification(&self, by: ActionRef, action: &Sns, result: &Value) -> Result<Write, String> {
        let result = bytes(result);
        let now = self.engine.now();
        let body = sns::notification(&action.topic_arn, action.format, &result, now)?;
        self.post(by, &action.url, sns::headers(&action.topic_arn), &body)
    }

    fn post(
        &self,
        by: ActionRef,
        url: &str,
        headers: Vec<(String, String)>,
        body: &[u8],
    ) -> Result<Write, String> {
        let now = self.engine.now();
        let item = outbox::to_item(now, &by, url, headers, body, self.message)?;
        Ok(Write {
            by,
            key: Some(outbox::key_of(&item)),
            request: Put::new(crate::rules::schema::REQUESTS, item).into(),
            moving: None,
        })
    }

    fn notice(&self, user: &str, action: &compiled::Push) -> Result<Notice, String> {
        let user = user.parse::<UserId>().map_err(|error| error.to_string())?;
        let message = push::Message::new(push::NewMessage {
            title: Some(self.render(&action.title)?),
            body: Some(self.render(&action.body)?),
            ..push::NewMessage::default()
        });
        Ok(Notice {
            user,
            message: message.map_err(|error| error.to_string())?,
        })
    }

    fn render(&self, template: &Template) -> Result<String, String> {
        template
            .render_with(&self.seen, &self.variables, &mut random)
            .map_err(|error| with_sources(&error))
    }
}

/// The message in the form that statements read.
pub(in crate::rules) fn seen<'a>(
    message: &'a Message,
    payload: &'a Payload<'a>,
    trace_id: &'a str,
) -> homeport_rules::Message<'a> {
    let properties = &message.properties;
    homeport_rules::Message {
        topic: &message.topic,
        payload,
        client_id: message.publisher.client_id.as_deref(),
        principal: message.publisher.principal.as_deref(),
        source_ip: None,
        account_id: ACCOUNT_ID,
        now_ms: message.received_at.0,
        trace_id,
        properties: homeport_rules::Properties {
            content_type: properties.content_type.as_deref(),
            response_topic: properties.response_topic.as_deref(),
            correlation_data: properties.correlation_data.as_deref(),
            payload_is_text: properties.payload_is_text.then_some(true),
            user: &properties.user,
        },
    }
}

/// Random bytes from the operating system.
pub(in crate::rules) fn random(bytes: &mut [u8]) {
    getrandom::fill(bytes).expect("the operating system gives random bytes");
}

/// The payload of a message or a request.
fn bytes(result: &Value) -> Bytes {
    match result {
        Value::Bytes(bytes) => Bytes::copy_from_slice(bytes),
        other => Bytes::from(other.to_json()),
    }
}

/// The seconds of an expiry that is in milliseconds.
fn seconds(expiry: Option<&Attribute>) -> Option<i64> {
    let millis = expiry?.as_number()?.floor_i64();
    (millis > TTL_SECS_MAX).then(|| millis.div_euclid(1000))
}

/// An error with its sources.
pub(in crate::rules) fn with_sources(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(": ");
        text.push_str(&error.to_string());
        source = error.source();
    }
    text
}
