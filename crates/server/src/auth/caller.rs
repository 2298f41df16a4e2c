//! Who makes a request.

use std::sync::Arc;

use homeport_systems::api_keys::ApiKey;
use homeport_systems::people::Access;
use homeport_systems::push::UserId;

use super::needs::Action;
use super::permission::Subject;
use crate::problem::Problem;

/// An authenticated caller.
#[derive(Debug, Clone)]
pub(crate) enum Caller {
    /// A person with a session or a token, or the admin token, which is an administrator named `admin`.
    Person(Arc<Access>),
    /// A device or service with an active API key, within its rate limit.
    ApiKey(Arc<ApiKey>),
    /// A user of an app.
    User(UserId),
}

impl Caller {
    /// Who did something, as rules and stored items name them.
    pub(crate) fn principal(&self) -> String {
        match self {
            Self::Person(access) => access.name.clone(),
            Self::ApiKey(key) => key.key_id.to_string(),
            Self::User(user) => user.to_string(),
        }
    }

    /// The user whose devices a request concerns: users act for themselves, people name a user.
    pub(crate) fn resolve_user(
        &self,
        action: Action,
        system: &str,
        named: Option<&str>,
    ) -> Result<UserId, Problem> {
        let named: Option<UserId> = named.map(str::parse).transpose()?;
        let user = match (self, named) {
            (_, Some(named)) => named,
            (Self::User(user), None) => user.clone(),
            (_, None) => return Err(Problem::invalid("operators must set ?userId=")),
        };
        self.check(action, system, Subject::One(user.as_str()))?;
        Ok(user)
    }
}
