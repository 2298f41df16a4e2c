//! The ARNs of tables, indexes, streams, backups, exports and imports.

use crate::constraints::is_name;

/// The account of every ARN.
const ACCOUNT: &str = "000000000000";

/// The shortest and the longest ARN that a request may have.
pub(crate) const LEN: (usize, usize) = (37, 1024);

/// A resource that belongs to a table and has an ARN of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TablePart {
    Stream,
    Backup,
    Export,
    Import,
}

impl TablePart {
    fn name(self) -> &'static str {
        match self {
            Self::Stream => "stream",
            Self::Backup => "backup",
            Self::Export => "export",
            Self::Import => "import",
        }
    }
}

pub(crate) fn of_table(region: &str, table: &str) -> String {
    format!("arn:aws:dynamodb:{region}:{ACCOUNT}:table/{table}")
}

pub(crate) fn of_index(region: &str, table: &str, index: &str) -> String {
    format!("{}/index/{index}", of_table(region, table))
}

/// The ARN of a stream, backup, export or import.
pub(crate) fn of_part(region: &str, table: &str, part: TablePart, id: &str) -> String {
    format!("{}/{}/{id}", of_table(region, table), part.name())
}

/// The ARN of an encryption key, which a request names by ARN, id or alias.
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

/// The table that an ARN names, in any region and account.
pub(crate) fn table_of(arn: &str) -> Option<&str> {
    let mut parts = arn.splitn(6, ':');
    let prefix = [parts.next()?, parts.next()?, parts.next()?];
    if prefix != ["arn", "aws", "dynamodb"] {
        return None;
    }
    let name = parts.nth(2)?.strip_prefix("table/")?;
    ((3..=255).contains(&name.len()) && is_name(name)).then_some(name)
}

/// The table and the id of the part that an ARN names, in any region and account.
pub(crate) fn part_of(arn: &str, part: TablePart) -> Option<(&str, &str)> {
    let (table_arn, id) = arn.split_once(&format!("/{}/", part.name()))?;
    Some((table_of(table_arn)?, id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encryption_keys_are_described_by_arn() {
        for (given, expected) in [
            (
                "alias/aws/dynamodb",
                "arn:aws:kms:eu-west-1:000000000000:alias/aws/dynamodb",
            ),
            ("1234-ab", "arn:aws:kms:eu-west-1:000000000000:key/1234-ab"),
            ("arn:aws:kms:x:1:key/a", "arn:aws:kms:x:1:key/a"),
        ] {
            assert_eq!(of_encryption_key("eu-west-1", given), expected);
        }
    }

    #[test]
    fn table_arns_round_trip() {
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
