//! A server with scripted responses that records its requests, for behaviour that no implementation
//! of DynamoDB produces on demand, such as throttling.

pub(crate) mod server;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// A response: status and body. `None` closes the connection.
pub(crate) type Answer = Option<(u16, String)>;

/// A running script, which stops with the test's runtime.
pub(crate) struct Script {
    pub(crate) url: String,
    state: Arc<Mutex<State>>,
}

struct State {
    answers: VecDeque<Answer>,
    has_time_to_live: bool,
    asked: Vec<(String, String)>,
}

impl Script {
    /// Serves `answers` in order. Requests for table descriptions are answered separately: every
    /// table exists, with the partition key `pk` and no time to live.
    pub(crate) async fn start(answers: impl IntoIterator<Item = Answer>) -> Self {
        Self::serve(answers, false).await
    }

    /// Like `start`, with time to live in `expires` for every table.
    pub(crate) async fn start_expiring(answers: impl IntoIterator<Item = Answer>) -> Self {
        Self::serve(answers, true).await
    }

    async fn serve(answers: impl IntoIterator<Item = Answer>, has_time_to_live: bool) -> Self {
        let state = Arc::new(Mutex::new(State {
            answers: answers.into_iter().collect(),
            has_time_to_live,
            asked: Vec::new(),
        }));
        let shared = Arc::clone(&state);
        let url = server::serve(move |operation, body| answer(&shared, operation, body)).await;
        Self { url, state }
    }

    /// The recorded operations and bodies, without requests for table descriptions.
    pub(crate) fn asked(&self) -> Vec<(String, String)> {
        self.state.lock().expect("no panic").asked.clone()
    }
}

/// An error in DynamoDB's form.
pub(crate) fn error(status: u16, code: &str) -> Answer {
    let body = format!(
        r#"{{"__type":"com.amazonaws.dynamodb.v20120810#{code}","message":"as the script says"}}"#
    );
    Some((status, body))
}

pub(crate) fn success(body: &str) -> Answer {
    Some((200, body.to_owned()))
}

fn answer(state: &Mutex<State>, operation: String, body: String) -> Answer {
    match operation.as_str() {
        "DescribeTable" => success(
            r#"{"Table":{"TableName":"things","TableStatus":"ACTIVE","KeySchema":[{"AttributeName":"pk","KeyType":"HASH"}],"AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"}]}}"#,
        ),
        "DescribeTimeToLive" => success(if state.lock().expect("no panic").has_time_to_live {
            r#"{"TimeToLiveDescription":{"TimeToLiveStatus":"ENABLED","AttributeName":"expires"}}"#
        } else {
            r#"{"TimeToLiveDescription":{"TimeToLiveStatus":"DISABLED"}}"#
        }),
        _ => {
            let mut state = state.lock().expect("no panic");
            state.asked.push((operation, body));
            let next = state.answers.pop_front();
            next.unwrap_or_else(|| error(400, "NothingMoreInTheScript"))
        }
    }
}
