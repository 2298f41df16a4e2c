//! A permission that a request needs: one action on one resource.

use super::request_context::{RequestContext, Values};

/// The longest ARN. Every operation rejects the names in a longer one.
const ARN_MAX_BYTES: usize = 4096;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Permission {
    /// The action with its service, such as `dynamodb:GetItem`.
    pub(super) action: String,
    pub(super) resource: Resource,
    pub(super) context: RequestContext,
}

/// The resource of an action, as an ARN.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Resource {
    One(String),
    /// All resources whose ARN begins with this.
    Prefix(String),
}

impl Permission {
    pub(super) fn new(action: String, resource: Resource) -> Self {
        let (Resource::One(arn) | Resource::Prefix(arn)) = &resource;
        let is_possible = arn.len() <= ARN_MAX_BYTES;
        Self {
            action,
            // A longer one is not matched with patterns, because that would take long.
            resource: if is_possible {
                resource
            } else {
                Resource::any()
            },
            context: RequestContext::default(),
        }
    }

    /// The same permission with the values for conditions.
    pub(crate) fn with(self, context: RequestContext) -> Self {
        Self { context, ..self }
    }

    /// The same permission with an unknown context, which no condition accepts.
    pub(super) fn unknown(self) -> Self {
        self.with(RequestContext {
            leading_keys: Values::Unknown,
            attributes: Values::Unknown,
            ..RequestContext::default()
        })
    }
}

impl Resource {
    /// All resources, for an operation without a specific one.
    pub(super) fn any() -> Self {
        Self::One("*".to_owned())
    }
}

impl std::fmt::Display for Resource {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::One(arn) => formatter.write_str(arn),
            Self::Prefix(arn) => write!(formatter, "{arn}*"),
        }
    }
}
