//! The table of the record store. Its keys and attributes are frozen: they come from the design document and
//! are written nowhere else. Sort keys and searched prefixes end with `#`; otherwise device 1 would match
//! device 10.

use homeport_item::schema::{StreamView, TableSchema};
use homeport_item::{Item, KeyKind};

use super::types::{DeviceId, GroupId, JournalId, RecordTime};

/// The first part of the table's name; the stage follows.
pub const TABLE_PREFIX: &str = "awsh-recordstore-";
/// The default stage.
pub const STAGE_DEFAULT: &str = "dev";

pub const PK: &str = "PK";
pub const SK: &str = "SK";

/// The first words of sort keys.
pub const GROUP: &str = "Group#";
pub const DEVICE: &str = "Device#";
pub const JOURNAL: &str = "Journal#";
pub const RECORD: &str = "Record#";
pub const LATEST_RECORD: &str = "LatestRecord#";

/// Attributes of groups, devices and journals.
pub const NAME: &str = "name";
/// Attributes of groups: how long history is kept, and the id of the group in the application.
pub const RETENTION_SECS: &str = "retention_secs";
pub const EXTERNAL_ID: &str = "external_id";
/// Attributes of devices.
pub const MODEL: &str = "model";
pub const ACL_POLICY: &str = "acl_policy";
/// Attributes of journals.
pub const DATA_TYPE: &str = "data_type";
/// Attributes of records, in the history and of latest records.
pub const VALUE: &str = "value";
pub const UNIT: &str = "unit";
pub const TYPE: &str = "type";
pub const TIMESTAMP: &str = "timestamp";

/// Items of Homeport that the design document does not have. Groups have numeric partition keys, so none can
/// collide. There is one item for each id tag, in its own partition.
pub const ID_TAG: &str = "IdTag#";
/// One item for each group, where housekeeping finds all groups.
pub const GROUPS: &str = "Groups#";
/// One item for each external id of a group, in its own partition.
pub const GROUP_OF: &str = "ExternalId#";
/// Attribute of that item: the group.
pub const GROUP_ID: &str = "gid";
/// One item for each unfinished removal.
pub const REMOVAL: &str = "Removal#";

/// The record ids that were used within the last days, so that a repeated record is stored once. A table of
/// Homeport's own, because the document's table has no expiry. Its attribute `timestamp` is that of the record.
pub const RECORD_IDS: &str = "homeport-record-ids";
/// Of record ids: a digest of what was sent.
pub const DIGEST: &str = "digest";
/// Of record ids: when the item expires.
pub const FORGET_AT: &str = "forget_at";

/// Attributes of id tags.
pub const IDTAG: &str = "idtag";
pub const SALT: &str = "salt";
pub const MIN_LENGTH: &str = "min_length";
pub const LAST_ID: &str = "last_id";

#[must_use]
pub fn table(name: &str) -> TableSchema {
    TableSchema::new(name, PK, KeyKind::S)
        .with_sort(SK, KeyKind::S)
        // The list of groups follows this stream.
        .with_stream(StreamView::NewImage)
}

#[must_use]
pub fn record_ids() -> TableSchema {
    TableSchema::new(RECORD_IDS, PK, KeyKind::S)
        .with_sort(SK, KeyKind::S)
        .with_ttl(FORGET_AT)
}

/// All tables of the system.
#[must_use]
pub fn tables(name: &str) -> Vec<TableSchema> {
    vec![table(name), record_ids()]
}

pub(super) fn group_sort(group: GroupId) -> String {
    format!("{GROUP}{group}#")
}

pub(super) fn device_sort(device: DeviceId) -> String {
    format!("{DEVICE}{device}#")
}

pub(super) fn journal_sort(device: DeviceId, journal: JournalId) -> String {
    format!("{JOURNAL}{device}#{journal}#")
}

pub(super) fn record_sort(device: DeviceId, journal: JournalId, at: RecordTime) -> String {
    format!("{RECORD}{device}#{journal}#{at}#")
}

pub(super) fn latest_sort(device: DeviceId, journal: JournalId) -> String {
    format!("{LATEST_RECORD}{device}#{journal}#")
}

/// The prefix of the sort keys of one device, after one of the words above.
pub(super) fn of_device(word: &str, device: DeviceId) -> String {
    format!("{word}{device}#")
}

/// The prefix of the sort keys of one journal, after one of the words above.
pub(super) fn of_journal(word: &str, device: DeviceId, journal: JournalId) -> String {
    format!("{word}{device}#{journal}#")
}

pub(super) fn key(partition: impl Into<String>, sort: impl Into<String>) -> Item {
    Item::new().with(PK, partition.into()).with(SK, sort.into())
}

/// The key of an item in a group's partition.
pub(super) fn key_in(group: GroupId, sort: impl Into<String>) -> Item {
    key(group.to_string(), sort)
}

/// The ids in a sort key, in order: everything between `#` after the first word.
pub(super) fn ids_in(sort: &str) -> impl Iterator<Item = &str> {
    sort.trim_end_matches('#').split('#').skip(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sort_keys_have_the_documented_form() {
        let (group, device, journal) = (GroupId(4), DeviceId(1), JournalId(10));
        let at = RecordTime::try_from(1_600_000_000).unwrap();
        for (made, documented) in [
            (group_sort(group), "Group#4#"),
            (device_sort(device), "Device#1#"),
            (journal_sort(device, journal), "Journal#1#10#"),
            (
                record_sort(device, journal, at),
                "Record#1#10#0001600000000#",
            ),
            (latest_sort(device, journal), "LatestRecord#1#10#"),
        ] {
            assert_eq!(made, documented);
        }
        assert_eq!(
            ids_in("Record#1#10#0001600000000#").collect::<Vec<_>>(),
            ["1", "10", "0001600000000"]
        );
    }

    #[test]
    fn prefix_of_device_one_excludes_device_ten() {
        let ten = journal_sort(DeviceId(10), JournalId(1));
        assert!(!ten.starts_with(&of_device(JOURNAL, DeviceId(1))));
    }
}
