//! Where a broadcast is on its way over the active devices: in the index if the table has one, and else in the table.
//! Both are ordered by user.

use homeport_item::expression::{Condition, KeyCondition, Path, Projection};
use homeport_item::{Item, Map, Value};
use homeport_store::{Query, Scan};

use crate::push::measured::store_error;
use crate::push::types::{Platform, UserId};
use crate::push::{Push, PushError, schema};

/// Users that one step reads. Each needs a write and a check in the step's transaction of at most 100.
pub(super) const USERS_PER_STEP: usize = 40;
/// Devices that one step reads in the index: most users have one or two.
const DEVICES_PER_READ: usize = 2 * USERS_PER_STEP;
/// Items that one step scans in the table, whether or not they match.
const SCANNED_AT_ONCE: usize = 500;

/// The next devices are those after a key: of one platform in the index, or in the table.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Walk {
    platform: Option<Platform>,
    after: Option<Item>,
}

/// Users with active devices, each with the position after the user.
pub(super) type Users = Vec<(UserId, Walk)>;

impl Walk {
    pub(super) fn start(wanted: Option<Platform>, has_index: bool) -> Self {
        Self {
            platform: has_index.then(|| wanted.unwrap_or(Platform::ALL[0])),
            after: None,
        }
    }

    /// Whether the position is one in the index.
    pub(super) fn is_in_index(&self) -> bool {
        self.platform.is_some()
    }

    pub(super) fn to_value(&self) -> Value {
        let platform = self
            .platform
            .map(|one| (schema::WALK_PLATFORM, one.as_str().into()));
        let after = self.after.clone().map(Item::into_attributes);
        let after = after.map(|after| (schema::WALK_AFTER, Value::M(after)));
        Value::M(platform.into_iter().chain(after).collect())
    }

    pub(super) fn parse(fields: &Map) -> Option<Self> {
        let platform = fields
            .get(schema::WALK_PLATFORM)
            .map(|value| value.as_str()?.parse().ok());
        let after = fields.get(schema::WALK_AFTER).map(Value::as_map);
        Some(Self {
            platform: match platform {
                Some(platform) => Some(platform?),
                None => None,
            },
            after: match after {
                Some(after) => Some(after?.clone().into()),
                None => None,
            },
        })
    }

    /// The position after everything with this platform: the next platform in the index, if it is wanted too.
    fn next_platform(&self, wanted: Option<Platform>) -> Option<Self> {
        let mut platforms = Platform::ALL.into_iter();
        platforms.find(|one| Some(*one) == self.platform)?;
        let platform = platforms.next().filter(|_| wanted.is_none())?;
        Some(Self {
            platform: Some(platform),
            after: None,
        })
    }

    fn after(&self, key: Item) -> Self {
        Self {
            after: Some(key),
            ..self.clone()
        }
    }
}

impl Push {
    /// The next users with active devices, and the position after all of them.
    pub(super) async fn next_users(
        &self,
        walk: &Walk,
        wanted: Option<Platform>,
    ) -> Result<(Users, Option<Walk>), PushError> {
        let page = match walk.platform {
            Some(platform) => {
                let condition = KeyCondition::new(schema::ACTIVE_PLATFORM, platform.as_str());
                let query = Query::new(self.table(), condition)
                    .on_index(schema::ACTIVE_PLATFORM_INDEX)
                    .limit(DEVICES_PER_READ)
                    .starting_after(walk.after.clone());
                self.store.query(query).await
            }
            None => {
                let mut scan = Scan::new(self.table())
                    .filter(is_wanted(wanted))
                    .limit(SCANNED_AT_ONCE);
                scan.projection = Some(Projection::new([schema::USER_ID, schema::DEVICE_ID]));
                scan.start = walk.after.clone();
                self.store.scan(scan).await
            }
        };
        let page = page.map_err(store_error)?;
        let end = match page.next {
            Some(key) => Some(walk.after(key)),
            None => walk.next_platform(wanted),
        };
        let mut users: Users = Vec::new();
        for item in page.items {
            let user = item.get(schema::USER_ID).and_then(Value::as_str);
            let Some(user) = user.and_then(|user| user.parse::<UserId>().ok()) else {
                tracing::warn!("a broadcast skipped a malformed user id");
                continue;
            };
            let is_full = users.len() == USERS_PER_STEP;
            match users.last_mut() {
                Some((last, after)) if *last == user => *after = walk.after(item),
                Some((_, after)) if is_full => {
                    let after = Some(after.clone());
                    return Ok((users, after));
                }
                _ => users.push((user, walk.after(item))),
            }
        }
        Ok((users, end))
    }
}

/// Active devices, of one platform or of all.
pub(super) fn is_wanted(platform: Option<Platform>) -> Condition {
    let is_active = Path::from(schema::IS_ACTIVE).equals(true);
    match platform {
        Some(platform) => is_active.and(Path::from(schema::PLATFORM).equals(platform.as_str())),
        None => is_active,
    }
}
