//! One call of an operation: reads, authorizes and records the request, in the same way for all operations.

use homeport_engine::Engine;
use serde::Deserialize;

use super::audit::{self, Entry};
use super::permission::Permission;
use super::policy::Decision;
use super::resources::Resources;
use crate::config::{Config, Credential};
use crate::failure::Failure;
use crate::input;

/// The input of an operation.
pub(crate) trait Request<'a>: Deserialize<'a> {
    /// Reads the body of a request. The operation uses only what this function reads.
    fn read(body: &'a [u8]) -> Result<Self, Failure> {
        input::read(body)
    }

    /// Every permission that the operation needs for this request. A request with an empty list names no resource, and needs
    /// permission for all resources.
    fn permissions(&self, resources: &Resources<'_>) -> Vec<Permission>;
}

/// Implements [`Request`] for an input whose member names the only resource of the operation, for example
/// `one_resource!(Input, table, table_name)`.
macro_rules! one_resource {
    ($input:ident, $resource:ident, $member:ident) => {
        impl<'a> $crate::access::Request<'a> for $input<'a> {
            fn permissions(
                &self,
                resources: &$crate::access::Resources<'_>,
            ) -> Vec<$crate::access::Permission> {
                vec![resources.$resource(self.$member.as_ref())]
            }
        }
    };
}
pub(crate) use one_resource;

/// A caller and the operation that it calls.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call<'s> {
    pub(crate) engine: &'s Engine,
    pub(crate) config: &'s Config,
    pub(crate) operation: &'static str,
    /// `None` if no credentials are configured.
    pub(crate) caller: Option<&'s Credential>,
}

impl<'s> Call<'s> {
    /// Reads the request of the operation.
    pub(crate) fn read<'a, R: Request<'a>>(&self, body: &'a [u8]) -> Result<R, Failure> {
        R::read(body).inspect_err(|failure| self.entry(&[]).record(Err(failure)))
    }

    /// Checks the caller's policy, if there is one. Returns the entry of the audit log.
    pub(crate) fn authorize<'a>(&self, request: &impl Request<'a>) -> Result<Entry<'s>, Failure> {
        let policy = self.caller.and_then(Credential::policy);
        // Without a policy nothing is denied, and operations on items are recorded only if denied.
        if policy.is_none() && audit::is_item_operation(self.operation) {
            return Ok(self.entry(&[]));
        }
        let resources = Resources {
            engine: self.engine,
            region: &self.config.region,
            operation: self.operation,
        };
        let mut permissions = request.permissions(&resources);
        if permissions.is_empty() {
            permissions.push(resources.any().unknown());
        }
        let entry = self.entry(&permissions);
        let Some((caller, policy)) = self.caller.zip(policy) else {
            return Ok(entry);
        };
        for permission in &permissions {
            let reason = match policy.decide(permission) {
                Decision::Allowed => continue,
                Decision::Denied => "with an explicit deny in an identity-based policy".to_owned(),
                Decision::NotAllowed => format!(
                    "because no identity-based policy allows the {} action",
                    permission.action
                ),
            };
            let denied = Failure::access_denied(format!(
                "User: arn:aws:iam::000000000000:user/{} is not authorized to perform: {} on resource: {} {reason}",
                caller.user_name(),
                permission.action,
                permission.resource,
            ));
            // The list of all resources may be truncated before this one.
            self.entry(std::slice::from_ref(permission))
                .record(Err(&denied));
            return Err(denied);
        }
        Ok(entry)
    }

    fn entry(&self, permissions: &[Permission]) -> Entry<'s> {
        Entry::new(self.operation, self.caller, permissions)
    }
}
