//! Whether a credential's policy permits a request.

use homeport_engine::Engine;

use super::needs;
use super::policy::Decision;
use crate::config::{Config, Credential};
use crate::failure::Failure;

/// Checks everything that a request needs against the policy of who asks, where that has one.
pub(crate) fn authorize(
    engine: &Engine,
    config: &Config,
    who: Option<&Credential>,
    operation: &str,
    body: &[u8],
) -> Result<(), Failure> {
    let Some((credential, policy)) = who.and_then(|who| Some((who, who.policy()?))) else {
        return Ok(());
    };
    let user_name = credential.user_name();
    for need in needs::of(engine, &config.region, operation, body) {
        let refused = |reason: &str| {
            Failure::access_denied(format!(
                "User: arn:aws:iam::000000000000:user/{user_name} is not authorized to perform: {action} on resource: {} {reason}",
                need.resource,
                action = need.action,
            ))
        };
        match policy.decide(&need.action, &need.resource, &need.context) {
            Decision::Allowed => {}
            Decision::Denied => {
                return Err(refused("with an explicit deny in an identity-based policy"));
            }
            Decision::NotAllowed => {
                return Err(refused(&format!(
                    "because no identity-based policy allows the {} action",
                    need.action
                )));
            }
        }
    }
    Ok(())
}
