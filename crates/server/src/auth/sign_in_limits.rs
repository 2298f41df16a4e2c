//! The limit on sign-ins with wrong passwords or codes: for each address, like wrong admin tokens, and for each name.

use std::net::IpAddr;
use std::sync::Arc;

use axum::http::StatusCode;
use homeport_listen::client_network;
use homeport_store::Clock;
use homeport_systems::people::PeopleError;
use metrics::counter;

use super::admin_token::WRONG_PER_ADDRESS;
use super::rate_limit::{RateLimit, RateLimiter};
use crate::problem::Problem;

/// Wrong passwords and codes for one name, from all addresses.
const WRONG_PER_NAME: RateLimit = RateLimit {
    per_second: 1.0 / 30.0,
    burst: 20.0,
};
/// Characters of a name that count, so that a long one needs no memory.
const NAME_CHARS: usize = 64;

/// The limits of all sign-ins.
pub(crate) struct SignInLimits {
    by_network: RateLimiter<IpAddr>,
    by_name: RateLimiter<String>,
}

impl SignInLimits {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            by_network: RateLimiter::new(WRONG_PER_ADDRESS, Arc::clone(&clock)),
            by_name: RateLimiter::new(WRONG_PER_NAME, clock),
        }
    }

    /// Runs an attempt within the limits. Unlike with the admin token, a right password does not pass when a limit is
    /// reached, because passwords can be guessed. Only wrong ones count.
    pub(crate) async fn attempt<T>(
        &self,
        client: IpAddr,
        name: &str,
        attempt: impl Future<Output = Result<T, PeopleError>>,
    ) -> Result<T, Problem> {
        let name: String = name.chars().take(NAME_CHARS).collect();
        let network = client_network(client);
        // Taken first, so that many attempts at once count too.
        self.by_network.take(network).map_err(limited)?;
        if let Err(wait_secs) = self.by_name.take(name.clone()) {
            self.by_network.put_back(network);
            return Err(limited(wait_secs));
        }
        let attempted = attempt.await;
        let is_wrong = matches!(
            attempted,
            Err(PeopleError::WrongPassword | PeopleError::WrongCode | PeopleError::InvalidSetup)
        );
        if is_wrong {
            counter!("homeport_wrong_sign_ins_total", "outcome" => "rejected").increment(1);
        } else {
            self.by_network.put_back(network);
            self.by_name.put_back(name);
        }
        Ok(attempted?)
    }
}

fn limited(wait_secs: u64) -> Problem {
    counter!("homeport_wrong_sign_ins_total", "outcome" => "limited").increment(1);
    Problem::new(
        StatusCode::TOO_MANY_REQUESTS,
        "RATE_LIMITED",
        "too many wrong passwords or codes; try again later",
    )
    .retry_after(wait_secs)
}

impl std::fmt::Debug for SignInLimits {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("SignInLimits")
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use homeport_store::ManualClock;

    use super::*;

    async fn attempt(limits: &SignInLimits, address: &str, name: &str, is_right: bool) -> bool {
        let client = address.parse().expect("an address");
        let outcome = async { is_right.then_some(()).ok_or(PeopleError::WrongPassword) };
        let attempted = limits.attempt(client, name, outcome).await;
        !attempted.is_err_and(|problem| problem.status() == StatusCode::TOO_MANY_REQUESTS)
    }

    #[tokio::test]
    async fn wrong_passwords_are_limited_by_address() {
        let limits = SignInLimits::new(Arc::new(ManualClock::at_ms(0)));
        for _ in 0..100 {
            assert!(attempt(&limits, "192.0.2.1", "anna", true).await);
        }
        for at in 0..10 {
            assert!(attempt(&limits, "192.0.2.1", &format!("name{at}"), false).await);
        }
        assert!(!attempt(&limits, "192.0.2.1", "anna", true).await);
        assert!(attempt(&limits, "192.0.2.2", "anna", true).await);
    }

    #[tokio::test]
    async fn wrong_passwords_are_limited_by_name() {
        let clock = Arc::new(ManualClock::at_ms(0));
        let limits = SignInLimits::new(Arc::clone(&clock) as _);
        for at in 0..20 {
            assert!(attempt(&limits, &format!("192.0.2.{at}"), "anna", false).await);
        }
        assert!(!attempt(&limits, "192.0.2.99", "anna", true).await);
        assert!(attempt(&limits, "192.0.2.99", "bert", true).await);
        clock.advance_ms(30_000);
        assert!(attempt(&limits, "192.0.2.99", "anna", true).await);
    }
}
