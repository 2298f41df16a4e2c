//! The admin token and the limit on wrong ones, which HTTP, the console's sign-in and MQTT share.

use std::net::IpAddr;
use std::sync::Arc;

use axum::http::StatusCode;
use homeport_listen::client_network;
use homeport_store::Clock;
use metrics::counter;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::rate_limit::{RateLimit, RateLimiter};
use crate::problem::Problem;

/// Wrong tokens from one address (IPv6: from one /64).
pub(super) const WRONG_PER_ADDRESS: RateLimit = RateLimit {
    per_second: 1.0 / 6.0,
    burst: 10.0,
};
/// Wrong tokens from all addresses together.
const WRONG_IN_TOTAL: RateLimit = RateLimit {
    per_second: 1.0,
    burst: 100.0,
};

/// The credential of the administrator `admin`. Its `Debug` form hides the token. Clones share the limit on wrong tokens.
#[derive(Clone)]
pub struct AdminToken(Arc<Shared>);

struct Shared {
    token: String,
    wrong_by_network: RateLimiter<IpAddr>,
    wrong_in_total: RateLimiter<()>,
}

/// Why a token is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TokenRejected {
    #[error("invalid admin token")]
    Wrong,
    #[error("too many wrong admin tokens were sent; try again later")]
    TooMany { wait_secs: u64 },
}

impl AdminToken {
    #[must_use]
    pub fn new(token: &str, clock: Arc<dyn Clock>) -> Self {
        Self(Arc::new(Shared {
            token: token.to_owned(),
            wrong_by_network: RateLimiter::new(WRONG_PER_ADDRESS, Arc::clone(&clock)),
            wrong_in_total: RateLimiter::new(WRONG_IN_TOTAL, clock),
        }))
    }

    /// Checks a token that a client sent. The right token passes even when the limit on wrong ones is reached, so that
    /// nobody can lock administrators out.
    pub(crate) fn check(&self, sent: &str, client: IpAddr) -> Result<(), TokenRejected> {
        if self.is(sent) {
            return Ok(());
        }
        Err(self.reject(client))
    }

    /// A number that changes with the token, by which sessions of another token are recognized.
    pub(crate) fn generation(&self) -> i64 {
        let digest = Sha256::new()
            .chain_update(b"homeport sessions of the admin token\0")
            .chain_update(self.0.token.as_bytes())
            .finalize();
        let (first, _) = digest.split_first_chunk().expect("a digest has 32 bytes");
        i64::from_be_bytes(*first)
    }

    /// Compares in constant time.
    pub(crate) fn is(&self, sent: &str) -> bool {
        self.0.token.as_bytes().ct_eq(sent.as_bytes()).into()
    }

    /// Counts a wrong token. One beyond the limit of its address does not count in the total, so that a single address
    /// cannot use the total up.
    pub(crate) fn reject(&self, client: IpAddr) -> TokenRejected {
        let of_address = self.0.wrong_by_network.take(client_network(client));
        let (rejected, outcome) = match of_address.and_then(|()| self.0.wrong_in_total.take(())) {
            Ok(()) => (TokenRejected::Wrong, "rejected"),
            Err(wait_secs) => (TokenRejected::TooMany { wait_secs }, "limited"),
        };
        counter!("homeport_wrong_admin_tokens_total", "outcome" => outcome).increment(1);
        rejected
    }
}

impl From<TokenRejected> for Problem {
    fn from(rejected: TokenRejected) -> Self {
        let detail = rejected.to_string();
        match rejected {
            TokenRejected::Wrong => Self::new(StatusCode::UNAUTHORIZED, "TOKEN_INVALID", detail),
            TokenRejected::TooMany { wait_secs } => {
                Self::new(StatusCode::TOO_MANY_REQUESTS, "RATE_LIMITED", detail)
                    .retry_after(wait_secs)
            }
        }
    }
}

impl std::fmt::Debug for AdminToken {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("AdminToken(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use homeport_store::ManualClock;

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn wrong_tokens_are_limited_by_network() {
        let clock = Arc::new(ManualClock::at_ms(0));
        let token = AdminToken::new("right", Arc::clone(&clock) as _);
        let client = address("2001:db8:1:2:3::4");
        for _ in 0..10 {
            assert_eq!(token.check("wrong", client), Err(TokenRejected::Wrong));
        }
        let too_many = Err(TokenRejected::TooMany { wait_secs: 6 });
        assert_eq!(token.check("wrong", client), too_many);
        assert_eq!(token.check("wrong", address("2001:db8:1:2::99")), too_many);
        let other = address("2001:db8:1:3::4");
        assert_eq!(token.check("wrong", other), Err(TokenRejected::Wrong));
        assert_eq!(token.check("right", client), Ok(()));
        clock.advance_ms(6000);
        assert_eq!(token.check("wrong", client), Err(TokenRejected::Wrong));
    }

    #[test]
    fn wrong_tokens_are_limited_in_total() {
        let token = AdminToken::new("right", Arc::new(ManualClock::at_ms(0)));
        let rejected: Vec<_> = (0..=100)
            .map(|number| token.reject(IpAddr::from([10, 0, 0, number])))
            .collect();
        assert!(
            rejected[..100]
                .iter()
                .all(|rejected| *rejected == TokenRejected::Wrong)
        );
        assert_eq!(rejected[100], TokenRejected::TooMany { wait_secs: 1 });
        assert_eq!(token.check("right", address("10.0.0.1")), Ok(()));
    }

    #[test]
    fn one_address_cannot_use_up_the_total() {
        let token = AdminToken::new("right", Arc::new(ManualClock::at_ms(0)));
        for _ in 0..1000 {
            token.reject(address("192.0.2.1"));
        }
        let other = token.check("wrong", address("192.0.2.2"));
        assert_eq!(other, Err(TokenRejected::Wrong));
    }
}
