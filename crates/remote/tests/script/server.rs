//! A server of DynamoDB's protocol with a function as its handler.

use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::Answer;

/// Serves until the test's runtime ends; returns the address.
pub(crate) async fn serve<F>(answer: F) -> String
where
    F: Fn(String, String) -> Answer + Send + Sync + 'static,
{
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let answer = Arc::new(answer);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(connection(stream, Arc::clone(&answer)));
        }
    });
    format!("http://{address}")
}

async fn connection<F>(mut stream: TcpStream, answer: Arc<F>)
where
    F: Fn(String, String) -> Answer,
{
    let mut read = Vec::new();
    while let Some((operation, body)) = request(&mut stream, &mut read).await {
        let Some((status, body)) = answer(operation, body) else {
            return;
        };
        let head = format!(
            "HTTP/1.1 {status} Scripted\r\ncontent-type: application/x-amz-json-1.0\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        let whole = head + &body;
        if stream.write_all(whole.as_bytes()).await.is_err() {
            return;
        }
    }
}

/// Reads the next request of a connection: operation and body.
async fn request(stream: &mut TcpStream, read: &mut Vec<u8>) -> Option<(String, String)> {
    loop {
        let text = String::from_utf8_lossy(read).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let field = |name: &str| {
                let mut lines = head.lines().filter_map(|line| line.split_once(": "));
                lines
                    .find(|(field, _)| field.eq_ignore_ascii_case(name))
                    .map(|(_, value)| value.to_owned())
            };
            let len: usize = field("content-length")?.parse().ok()?;
            if body.len() >= len {
                let target = field("x-amz-target")?;
                let (_, operation) = target.split_once('.')?;
                let body = body[..len].to_owned();
                read.drain(..head.len() + 4 + len);
                return Some((operation.to_owned(), body));
            }
        }
        if stream.read_buf(read).await.ok()? == 0 {
            return None;
        }
    }
}
