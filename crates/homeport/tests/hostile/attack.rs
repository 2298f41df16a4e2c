//! One attack: a request of the corpus, mutated in one of many ways.

use std::time::Duration;

use serde_json::Value;

use crate::corpus;
use crate::exchange::{Exchange, Outcome};
use crate::json;
use crate::tally::Tally;
use homeport_simulate::SeededRandom;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Pause between the pieces of a slow body.
const SLOW_PIECE: Duration = Duration::from_millis(5);
/// How long a connection stays open after half of a request.
const HALF_OPEN: Duration = Duration::from_millis(300);

pub(crate) struct Attacker {
    random: SeededRandom,
    exchange: Exchange,
    tally: Tally,
    sent: usize,
}

/// The responses that are allowed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expect {
    /// A complete HTTP request: there must be a response.
    Answer,
    /// Not HTTP: the server may respond, close the connection, or wait for more.
    Anything,
}

impl Attacker {
    pub(crate) fn new(seed: u64, exchange: Exchange, tally: Tally) -> Self {
        Self {
            random: SeededRandom::new([seed]),
            exchange,
            tally,
            sent: 0,
        }
    }

    pub(crate) async fn attack_once(&mut self) {
        self.sent += 1;
        let number = self.sent;
        let requests = corpus::requests(number);
        let (operation, body) = self.choose(&requests);
        let text = body.to_string().into_bytes();
        match self.random.below(100) {
            0..4 => {
                let request = post(operation, &text);
                self.send("unchanged", &request, Expect::Answer).await;
            }
            4..60 => {
                let request = post(operation, &json::mutate(&body, &mut self.random));
                self.send("changed JSON", &request, Expect::Answer).await;
            }
            60..68 => {
                let other = self.random.pick(&requests).0;
                let request = post(other, &text);
                self.send("another operation's body", &request, Expect::Answer)
                    .await;
            }
            68..76 => {
                let request = post(operation, &self.damaged(text));
                self.send("damaged bytes", &request, Expect::Answer).await;
            }
            76..78 => self.wrong_length(operation, &text).await,
            78..81 => self.chunked(operation, &text).await,
            81..83 => self.pipelined(&requests).await,
            83..85 => self.slow(operation, &text).await,
            85..87 => self.bad_gzip(operation, text).await,
            87..91 => self.bad_headers(operation, &text).await,
            91..94 => self.wrong_target(&text).await,
            94..95 => self.huge_headers(operation, &text).await,
            95..97 => self.http_2(&body).await,
            97..98 => {
                let len = self.random.below(4000);
                let bytes = self.random.bytes(len);
                self.fresh("random bytes", &bytes).await;
            }
            _ => self.half_open(operation, &text).await,
        }
    }

    /// Chooses a request. Requests that change tables are rare, because all writes wait for them.
    fn choose(&mut self, requests: &[(&'static str, Value)]) -> (&'static str, Value) {
        const CHANGE_TABLES: [&str; 3] = ["CreateTable", "DeleteTable", "UpdateTable"];
        loop {
            let (operation, body) = self.random.pick(requests);
            if !CHANGE_TABLES.contains(operation) || self.random.once_in(20) {
                return (operation, body.clone());
            }
        }
    }

    fn damaged(&mut self, mut text: Vec<u8>) -> Vec<u8> {
        if self.random.once_in(3) {
            text.truncate(self.random.below(text.len().max(1)));
            return text;
        }
        for _ in 0..=self.random.below(8) {
            if !text.is_empty() {
                let at = self.random.below(text.len());
                text[at] ^= 1 << self.random.below(8);
            }
        }
        text
    }

    /// Sends more or fewer bytes than announced.
    async fn wrong_length(&mut self, operation: &str, text: &[u8]) {
        let announced = match self.random.below(4) {
            0 => text.len() / 2,
            1 => text.len() + 1 + self.random.below(100),
            2 => 16 * 1024 * 1024 + 1,
            _ => 15 * 1024 * 1024,
        };
        let mut request = head(operation, &format!("Content-Length: {announced}\r\n"));
        request.extend_from_slice(text);
        self.fresh("wrong length", &request).await;
    }

    async fn chunked(&mut self, operation: &str, text: &[u8]) {
        let mut request = head(operation, "Transfer-Encoding: chunked\r\n");
        let form = self.random.below(6);
        let mut rest = text;
        while !rest.is_empty() {
            let len = 1 + self.random.below(rest.len());
            let (chunk, after) = rest.split_at(len);
            let size = match form {
                1 => "zz".to_owned(),
                2 => "FFFFFFFFFFFFFFFFF".to_owned(),
                3 => format!("{len:x};{}", "x".repeat(self.random.below(40_000))),
                _ => format!("{len:x}"),
            };
            request.extend_from_slice(size.as_bytes());
            request.extend_from_slice(b"\r\n");
            request.extend_from_slice(chunk);
            request.extend_from_slice(if form == 4 { b"XX" } else { b"\r\n" });
            rest = after;
        }
        if form == 0 {
            request.extend_from_slice(b"0\r\n\r\n");
            self.send("chunks", &request, Expect::Answer).await;
        } else {
            request.extend_from_slice(b"0\r\nX: y\r\n\r\n");
            self.fresh("broken chunks", &request).await;
        }
    }

    async fn pipelined(&mut self, requests: &[(&'static str, Value)]) {
        let count = 2 + self.random.below(15);
        let mut bytes = Vec::new();
        for _ in 0..count {
            let (operation, body) = self.choose(requests);
            let body = if self.random.once_in(2) {
                json::mutate(&body, &mut self.random)
            } else {
                body.to_string().into_bytes()
            };
            // Long pipelines would block, because responses are read only afterwards.
            if body.len() < 4000 {
                bytes.extend_from_slice(&post(operation, &body));
            } else {
                bytes.extend_from_slice(&post("ListTables", b"{}"));
            }
        }
        self.exchange.drop_connection();
        self.tally.sent("many at once");
        if self.exchange.write(&bytes).await.is_err() {
            self.tally.outcome("connection ended");
            return;
        }
        for _ in 0..count {
            let outcome = self.exchange.read_answer().await;
            if !self.judge(outcome, &bytes, Expect::Answer) {
                break;
            }
        }
    }

    async fn slow(&mut self, operation: &str, text: &[u8]) {
        self.exchange.drop_connection();
        self.tally.sent("slow body");
        let request = post(operation, text);
        let piece = (request.len() / 20).max(1);
        for bytes in request.chunks(piece) {
            if self.exchange.write(bytes).await.is_err() {
                break;
            }
            tokio::time::sleep(SLOW_PIECE).await;
        }
        let outcome = self.exchange.read_answer().await;
        self.judge(outcome, &request, Expect::Answer);
    }

    async fn bad_gzip(&mut self, operation: &str, text: Vec<u8>) {
        let body = match self.random.below(3) {
            0 => text,
            1 => [&[0x1F, 0x8B, 8, 0][..], &text].concat(),
            _ => self.random.bytes(100),
        };
        let lines = format!(
            "Content-Encoding: gzip\r\nAccept-Encoding: gzip;q=2, ,;;gzip\r\nContent-Length: {}\r\n",
            body.len()
        );
        let mut request = head(operation, &lines);
        request.extend_from_slice(&body);
        self.send("bad gzip", &request, Expect::Answer).await;
    }

    async fn bad_headers(&mut self, operation: &str, text: &[u8]) {
        let len = text.len();
        let lines = match self.random.below(12) {
            0 => format!("Content-Length: {len}\r\nContent-Length: {}\r\n", len + 1),
            1 => "Content-Length: -1\r\n".to_owned(),
            2 => "Content-Length: 99999999999999999999999\r\n".to_owned(),
            3 => format!("Content-Length: {len}\r\nTransfer-Encoding: chunked\r\n"),
            4 => format!("Content-Length: {len}\r\nno colon here\r\n"),
            5 => format!("Content-Length: {len}\r\nb\u{1}d: x\r\n"),
            6 => format!("Content-Length: {len}\r\nA: \0\r\n"),
            7 => format!("Content-Length: {len}\r\n folded: x\r\n"),
            8 => format!(
                "Content-Length: {len}\r\nAuthorization: AWS4-HMAC-SHA256 Credential=//, SignedHeaders=;;, Signature=é\r\nX-Amz-Date: never\r\n"
            ),
            9 => format!("Content-Length: {len}\r\nExpect: 100-continue\r\n"),
            10 => format!(
                "Content-Length: {len}\r\nUpgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: zzz\r\n"
            ),
            _ => format!("Content-Length: {len}\r\nTransfer-Encoding: gzip, chunked, x\r\n"),
        };
        let mut request = head(operation, &lines);
        request.extend_from_slice(text);
        self.fresh("bad headers", &request).await;
    }

    async fn wrong_target(&mut self, text: &[u8]) {
        let lines: Vec<u8> = match self.random.below(7) {
            0 => b"X-Amz-Target: DynamoDB_20120810.\r\n".to_vec(),
            1 => b"X-Amz-Target: DynamoDB_20120810.putitem\r\n".to_vec(),
            2 => b"X-Amz-Target: DynamoDBStreams_20120810.PutItem\r\n".to_vec(),
            3 => b"X-Amz-Target: \xFF\xFE\r\n".to_vec(),
            4 => format!("X-Amz-Target: {}\r\n", "x".repeat(5000)).into_bytes(),
            5 => b"X-Amz-Target: DynamoDB_20120810.GetItem\r\nX-Amz-Target: y\r\n".to_vec(),
            _ => Vec::new(),
        };
        let methods = ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "BREW", "GET"];
        let types = [
            "application/x-amz-json-1.0",
            "application/json",
            "text/html",
            "",
            ";;;",
        ];
        let paths = ["/", "/x?y=z", "/%00", "*", "//", "/?a=%zz"];
        let mut request = format!(
            "{} {} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {}\r\nContent-Length: {}\r\n",
            self.random.pick(&methods),
            self.random.pick(&paths),
            self.random.pick(&types),
            text.len()
        )
        .into_bytes();
        request.extend_from_slice(&lines);
        request.extend_from_slice(b"\r\n");
        request.extend_from_slice(text);
        self.fresh("wrong target, method, path or type", &request)
            .await;
    }

    async fn huge_headers(&mut self, operation: &str, text: &[u8]) {
        let lines = match self.random.below(3) {
            0 => format!("X-Long: {}\r\n", "x".repeat(300_000)),
            1 => (0..500).map(|n| format!("X-{n}: {n}\r\n")).collect(),
            _ => format!("{}: x\r\n", "n".repeat(70_000)),
        };
        let lines = format!("{lines}Content-Length: {}\r\n", text.len());
        let mut request = head(operation, &lines);
        request.extend_from_slice(text);
        self.fresh("huge headers", &request).await;
    }

    /// Sends HTTP/2's preface, then invalid or misplaced frames.
    async fn http_2(&mut self, body: &Value) {
        let mut bytes = PREFACE.to_vec();
        if self.random.once_in(2) {
            bytes.extend_from_slice(&[0, 0, 0, 4, 0, 0, 0, 0, 0]);
        }
        for _ in 0..self.random.below(10) {
            let payload = if self.random.once_in(3) {
                body.to_string().into_bytes()
            } else {
                let len = self.random.below(200);
                self.random.bytes(len)
            };
            let len = u32::try_from(payload.len()).expect("a short payload");
            let [_, high, middle, low] = len.to_be_bytes();
            let kind = self.random.below(11) as u8;
            let flags = self.random.below(256) as u8;
            let stream = self.random.below(8) as u8;
            bytes.extend_from_slice(&[high, middle, low, kind, flags, 0, 0, 0, stream]);
            bytes.extend_from_slice(&payload);
        }
        self.fresh("HTTP/2 garbage", &bytes).await;
    }

    async fn half_open(&mut self, operation: &str, text: &[u8]) {
        let request = post(operation, text);
        let part = &request[..self.random.below(request.len())];
        self.exchange.drop_connection();
        self.tally.sent("half a request, left open");
        let _ = self.exchange.write(part).await;
        tokio::time::sleep(HALF_OPEN).await;
        self.exchange.drop_connection();
        self.tally.outcome("left by us");
    }

    /// Sends on a new connection, then closes the sending side.
    async fn fresh(&mut self, form: &'static str, bytes: &[u8]) {
        self.exchange.drop_connection();
        self.tally.sent(form);
        let _ = self.exchange.write(bytes).await;
        self.exchange.end_sending().await;
        let outcome = self.exchange.read_answer().await;
        self.judge(outcome, bytes, Expect::Anything);
        self.exchange.drop_connection();
    }

    async fn send(&mut self, form: &'static str, request: &[u8], expect: Expect) {
        self.tally.sent(form);
        let outcome = self.exchange.send(request).await;
        self.judge(outcome, request, expect);
    }

    /// Counts the response. Returns whether the connection stays open.
    fn judge(&mut self, outcome: Outcome, request: &[u8], expect: Expect) -> bool {
        match outcome {
            Outcome::Answer(answer) => {
                let kind = error_type(&answer.body);
                if answer.status >= 500 {
                    let what = format!("status {} {kind}", answer.status);
                    self.tally.finding(&what, request);
                }
                if answer.status == 200 && !is_good_body(&answer.body) {
                    self.tally.finding("a response that is not JSON", request);
                }
                self.tally
                    .outcome(format!("{} {kind}", answer.status).trim_end().to_owned());
                true
            }
            Outcome::Closed(how) => {
                if expect == Expect::Answer {
                    self.tally.finding(&format!("no response: {how}"), request);
                }
                self.tally.outcome("connection ended");
                false
            }
            Outcome::Silence => {
                self.tally
                    .finding("no response before the timeout", request);
                self.tally.outcome("silence");
                false
            }
        }
    }
}

fn head(operation: &str, lines: &str) -> Vec<u8> {
    let service = if corpus::STREAM_OPERATIONS.contains(&operation) {
        "DynamoDBStreams_20120810"
    } else {
        "DynamoDB_20120810"
    };
    format!(
        "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-amz-json-1.0\r\nX-Amz-Target: {service}.{operation}\r\n{lines}\r\n"
    )
    .into_bytes()
}

pub(crate) fn post(operation: &str, body: &[u8]) -> Vec<u8> {
    let mut request = head(operation, &format!("Content-Length: {}\r\n", body.len()));
    request.extend_from_slice(body);
    request
}

/// Responses are JSON, or compressed if requested. Changing tags returns nothing, and GET returns text for load balancers.
fn is_good_body(body: &[u8]) -> bool {
    const GZIP: [u8; 2] = [0x1F, 0x8B];
    body.is_empty()
        || body.starts_with(&GZIP)
        || body.starts_with(b"healthy: ")
        || serde_json::from_slice::<Value>(body).is_ok()
}

/// The error's name, if the body is an error.
fn error_type(body: &[u8]) -> String {
    let value: Option<Value> = serde_json::from_slice(body).ok();
    let kind = value.as_ref().and_then(|value| value["__type"].as_str());
    let kind = kind.and_then(|kind| kind.rsplit('#').next());
    kind.unwrap_or_default().to_owned()
}
