//! Requests with signatures like those of an SDK.

use hmac::{Hmac, Mac as _};
use homeport_wire::{Credential, Policy};
use hyper::http::request::Builder;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::server::Server;

/// A credential that signs requests.
pub(crate) struct Caller {
    id: &'static str,
    secret: &'static str,
}
pub(crate) const ADMIN: Caller = Caller {
    id: "ADMIN",
    secret: "admin secret",
};
pub(crate) const ANN: Caller = Caller {
    id: "ANN",
    secret: "ann secret",
};

/// An administrator without a policy, and Ann with one.
pub(crate) fn credentials(policy: &str) -> Vec<Credential> {
    let policy = Policy::parse(policy, "ann").expect("a policy");
    vec![
        Credential::new(ADMIN.id, ADMIN.secret),
        Credential::new(ANN.id, ANN.secret)
            .of_user("ann")
            .limited_by(policy),
    ]
}

fn hmac(key: &[u8], data: &str) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("any length");
    mac.update(data.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

/// The hash of a body in the form of `x-amz-content-sha256`.
pub(crate) fn sha256(body: &[u8]) -> String {
    hex(&Sha256::digest(body))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Server {
    /// Calls an operation with a request that `caller` signed.
    pub(crate) async fn call_as(
        &self,
        caller: &Caller,
        operation: &str,
        body: Value,
    ) -> (u16, Value) {
        self.send_as(caller, operation, body.to_string()).await
    }

    /// The same with any text as the body.
    pub(crate) async fn send_as(
        &self,
        caller: &Caller,
        operation: &str,
        body: String,
    ) -> (u16, Value) {
        let request = self
            .request_signed_by(caller, operation, body.as_bytes())
            .body(body.into());
        let response = self.send(request.expect("a request")).await;
        let status = response.status().as_u16();
        let body = http_body_util::BodyExt::collect(response.into_body())
            .await
            .expect("a body");
        let body = body.to_bytes();
        if body.is_empty() {
            return (status, Value::Null);
        }
        (status, serde_json::from_slice(&body).expect("JSON"))
    }

    /// A request whose signature covers `body`.
    pub(crate) fn request_signed_by(
        &self,
        caller: &Caller,
        operation: &str,
        body: &[u8],
    ) -> Builder {
        let date = timestamp(self.clock.now_ms() / 1000);
        let target = Self::target(operation);
        let scope = format!("{}/us-east-1/dynamodb/aws4_request", &date[..8]);
        let canonical = format!(
            "POST\n/\n\nhost:{}\nx-amz-date:{date}\nx-amz-target:{target}\n\nhost;x-amz-date;x-amz-target\n{}",
            self.address,
            sha256(body)
        );
        let to_sign = format!(
            "AWS4-HMAC-SHA256\n{date}\n{scope}\n{}",
            hex(&Sha256::digest(canonical))
        );
        let mut key = hmac(format!("AWS4{}", caller.secret).as_bytes(), &date[..8]);
        for part in ["us-east-1", "dynamodb", "aws4_request"] {
            key = hmac(&key, part);
        }
        let signature = hex(&hmac(&key, &to_sign));
        self.request(operation)
            .header("host", &self.address)
            .header("x-amz-date", &date)
            .header("authorization", format!("AWS4-HMAC-SHA256 Credential={}/{scope}, SignedHeaders=host;x-amz-date;x-amz-target, Signature={signature}", caller.id))
    }
}

/// A time in the form of signatures.
fn timestamp(secs: i64) -> String {
    let (days, second) = (secs.div_euclid(86_400), secs.rem_euclid(86_400));
    let mut year = 1970;
    let mut left = days;
    let is_leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    while left >= 365 + i64::from(is_leap(year)) {
        left -= 365 + i64::from(is_leap(year));
        year += 1;
    }
    let mut month = 1;
    for days in [
        31,
        28 + i64::from(is_leap(year)),
        31,
        30,
        31,
        30,
        31,
        31,
        30,
        31,
        30,
        31,
    ] {
        if left < days {
            break;
        }
        left -= days;
        month += 1;
    }
    format!(
        "{year:04}{month:02}{:02}T{:02}{:02}{:02}Z",
        left + 1,
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}
