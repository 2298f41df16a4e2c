//! The response to a client that speaks plain HTTP to a port with TLS.

use std::io;

use tokio::net::TcpStream;

/// Names the mistake. A TLS alert would be unreadable for the client.
pub(crate) const RESPONSE: &str = "HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\nconnection: close\r\n\
    content-length: 77\r\n\r\nThis port speaks TLS: use a URL that begins with https:// instead of http://\n";

/// Whether a client begins with a request in plain text. The first byte of TLS is not a letter.
pub(crate) async fn is_plain_http(stream: &TcpStream) -> io::Result<bool> {
    let mut first = [0];
    let len = stream.peek(&mut first).await?;
    Ok(len > 0 && first[0].is_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn response_states_its_own_length() {
        let (head, body) = RESPONSE.split_once("\r\n\r\n").expect("a body");
        assert!(head.ends_with(&format!("content-length: {}", body.len())));
    }
}
