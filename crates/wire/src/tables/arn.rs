//! The ARNs of tables, indexes and streams.

use crate::constraints::is_name;

/// The account that everything belongs to.
const ACCOUNT: &str = "000000000000";

pub(crate) fn of_table(region: &str, table: &str) -> String {
    format!("arn:aws:dynamodb:{region}:{ACCOUNT}:table/{table}")
}

pub(crate) fn of_index(region: &str, table: &str, index: &str) -> String {
    format!("{}/index/{index}", of_table(region, table))
}

pub(crate) fn of_stream(region: &str, table: &str, label: &str) -> String {
    format!("{}/stream/{label}", of_table(region, table))
}

pub(crate) fn of_backup(region: &str, table: &str, id: &str) -> String {
    format!("{}/backup/{id}", of_table(region, table))
}

pub(crate) fn of_export(region: &str, table: &str, id: &str) -> String {
    format!("{}/export/{id}", of_table(region, table))
}

pub(crate) fn of_import(region: &str, table: &str, id: &str) -> String {
    format!("{}/import/{id}", of_table(region, table))
}

/// The ARN of a key that a table is said to be encrypted with: given as such, by its id or by its alias.
pub(crate) fn of_encryption_key(region: &str, key: &str) -> String {
    if key.starts_with("arn:") {
        return key.to_owned();
    }
    let kind = if key.starts_with("alias/") {
        ""
    } else {
        "key/"
    };
    format!("arn:aws:kms:{region}:{ACCOUNT}:{kind}{key}")
}

/// The table and the id of the export that an ARN names, of whatever region and account.
pub(crate) fn export_of(arn: &str) -> Option<(&str, &str)> {
    let (table_arn, id) = arn.split_once("/export/")?;
    Some((table_of(table_arn)?, id))
}

/// The table and the id of the import that an ARN names, of whatever region and account.
pub(crate) fn import_of(arn: &str) -> Option<(&str, &str)> {
    let (table_arn, id) = arn.split_once("/import/")?;
    Some((table_of(table_arn)?, id))
}

/// How long an ARN may be.
pub(crate) const LEN: (usize, usize) = (37, 1024);

/// The table and the id of the backup that an ARN names, of whatever region and account.
pub(crate) fn backup_of(arn: &str) -> Option<(&str, &str)> {
    let (table_arn, id) = arn.split_once("/backup/")?;
    Some((table_of(table_arn)?, id))
}

/// The table that an ARN names, of whatever region and account.
pub(crate) fn table_of(arn: &str) -> Option<&str> {
    let mut parts = arn.splitn(6, ':');
    let prefix = [parts.next()?, parts.next()?, parts.next()?];
    if prefix != ["arn", "aws", "dynamodb"] {
        return None;
    }
    let name = parts.nth(2)?.strip_prefix("table/")?;
    ((3..=255).contains(&name.len()) && is_name(name)).then_some(name)
}

/// The table and the label of the stream that an ARN names, of whatever region and account.
pub(crate) fn stream_of(arn: &str) -> Option<(&str, &str)> {
    let (table_arn, label) = arn.split_once("/stream/")?;
    Some((table_of(table_arn)?, label))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_told_by_its_arn_however_it_was_given() {
        for (given, told) in [
            (
                "alias/aws/dynamodb",
                "arn:aws:kms:eu-west-1:000000000000:alias/aws/dynamodb",
            ),
            ("1234-ab", "arn:aws:kms:eu-west-1:000000000000:key/1234-ab"),
            ("arn:aws:kms:x:1:key/a", "arn:aws:kms:x:1:key/a"),
        ] {
            assert_eq!(of_encryption_key("eu-west-1", given), told);
        }
    }

    #[test]
    fn a_table_s_arn_leads_back_to_it() {
        let arn = of_table("eu-west-1", "readings");
        assert_eq!(
            arn,
            "arn:aws:dynamodb:eu-west-1:000000000000:table/readings"
        );
        assert_eq!(table_of(&arn), Some("readings"));
        for other in [
            "",
            "readings",
            "arn:aws:s3:::table/readings",
            "arn:aws:dynamodb:eu-west-1:000000000000:table/ab",
            "arn:aws:dynamodb:eu-west-1:000000000000:table/readings/index/x",
        ] {
            assert_eq!(table_of(other), None, "{other}");
        }
    }
}
