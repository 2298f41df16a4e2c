//! Any bytes as the body of any operation of DynamoDB's protocol, sent to a real port on an engine in a temporary directory.
//! The first line names the operation, or else the first byte chooses one. Every request must get a response, and never an
//! internal error.

#![no_main]

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::LazyLock;
use std::time::Duration;

use homeport_engine::{Engine, Options};
use homeport_wire::{Config, OPERATIONS, service};
use libfuzzer_sys::fuzz_target;

/// The table that the seeds use.
const TABLE: &str = r#"{"TableName":"things","KeySchema":[{"AttributeName":"a","KeyType":"HASH"}],"AttributeDefinitions":[{"AttributeName":"a","AttributeType":"S"}],"BillingMode":"PAY_PER_REQUEST"}"#;

static ADDRESS: LazyLock<SocketAddr> = LazyLock::new(start);

fuzz_target!(|input: &[u8]| {
    let Some((operation, body)) = parse(input) else {
        return;
    };
    post(operation, body);
    // Tables would accumulate, and the seeds' table must stay.
    if ["CreateTable", "DeleteTable"].contains(&operation) {
        reset();
    }
});

/// Deletes all tables except the one that the seeds use, which it creates if it is missing.
fn reset() {
    let (_, listed) = post("ListTables", b"{}");
    let names = listed.split(['[', ']']).nth(1).unwrap_or_default();
    let names: Vec<&str> = names.split('"').skip(1).step_by(2).collect();
    for name in names.iter().filter(|name| **name != "things") {
        let unprotected = format!(r#"{{"TableName":"{name}","DeletionProtectionEnabled":false}}"#);
        post("UpdateTable", unprotected.as_bytes());
        post(
            "DeleteTable",
            format!(r#"{{"TableName":"{name}"}}"#).as_bytes(),
        );
    }
    if !names.contains(&"things") {
        post("CreateTable", TABLE.as_bytes());
    }
}

fn parse(input: &[u8]) -> Option<(&'static str, &[u8])> {
    let line = input
        .split(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    let named = OPERATIONS.iter().find(|name| name.as_bytes() == line);
    if let Some(name) = named {
        return Some((*name, input.get(line.len() + 1..)?));
    }
    let (first, body) = input.split_first()?;
    Some((OPERATIONS[usize::from(*first) % OPERATIONS.len()], body))
}

fn start() -> SocketAddr {
    let directory = tempfile::tempdir().expect("a directory").keep();
    let engine = Engine::open(directory, Options::default()).expect("an engine");
    let (said, heard) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
                .await
                .expect("a port");
            said.send(listener.local_addr().expect("its address"))
                .expect("a receiver");
            service(engine, Config::default())
                .serve(listener, std::future::pending())
                .await;
        });
    });
    let address = heard.recv().expect("an address");
    assert_eq!(post_to(address, "CreateTable", TABLE.as_bytes()).0, 200);
    address
}

/// Sends a request, which must not cause an internal error. Returns the response's status and body.
fn post(operation: &str, body: &[u8]) -> (u16, String) {
    let (status, answer) = post_to(*ADDRESS, operation, body);
    assert!((200..500).contains(&status), "{operation}: {status}");
    (status, answer)
}

fn post_to(address: SocketAddr, operation: &str, body: &[u8]) -> (u16, String) {
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream
        .set_read_timeout(Some(Duration::from_secs(30)))
        .expect("a timeout");
    // DynamoDB Streams has its own target prefix.
    let service = match operation {
        "DescribeStream" | "GetRecords" | "GetShardIterator" | "ListStreams" => {
            "DynamoDBStreams_20120810"
        }
        _ => "DynamoDB_20120810",
    };
    let head = format!(
        "POST / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nX-Amz-Target: {service}.{operation}\r\n\
         Content-Type: application/x-amz-json-1.0\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream
        .write_all(head.as_bytes())
        .expect("the head is taken");
    // A body that is too large is rejected before it is read.
    let _ = stream.write_all(body);
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("an answer");
    let answer = String::from_utf8_lossy(&answer);
    let status = answer
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    let body = answer.split("\r\n\r\n").nth(1).unwrap_or_default();
    (status.expect("a status"), body.to_owned())
}
