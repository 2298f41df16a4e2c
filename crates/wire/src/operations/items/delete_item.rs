//! DeleteItem: deletes an item.

use super::write_input::DeleteInput;
use crate::failure::Failure;
use crate::service::Service;

pub(crate) async fn run(
    service: &Service,
    DeleteInput(input): DeleteInput<'_>,
) -> Result<Vec<u8>, Failure> {
    input.run(service).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input;

    #[test]
    fn invalid_deletes_get_dynamodb_errors() {
        for (body, text) in [
            (
                r#"{"TableName":"abc"}"#,
                "1 validation error detected: Value null at 'key' failed to satisfy constraint: Member must not be null",
            ),
            (
                r#"{"TableName":"abc","Key":{"a":{"N":"x"}}}"#,
                "1 validation error detected: The parameter cannot be converted to a numeric value: x",
            ),
            (
                r#"{"TableName":"abc","Key":{},"Expected":{"a":{"ComparisonOperator":"EQ"}}}"#,
                "1 validation error detected: One or more parameter values were invalid: Value or AttributeValueList must be used with ComparisonOperator: EQ for Attribute: a",
            ),
            (
                r#"{"TableName":"abc","Key":{},"ReturnValues":"UPDATED_NEW"}"#,
                "1 validation error detected: ReturnValues can only be ALL_OLD or NONE",
            ),
        ] {
            let DeleteInput(input) = input::read(body.as_bytes()).expect("well-formed");
            let failure = input.check().expect_err("refused");
            assert_eq!(failure.text(), Some(text), "{body}");
        }
    }
}
