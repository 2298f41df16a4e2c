//! PutItem: creates or replaces an item.

use super::write_input::PutInput;
use crate::failure::Failure;
use crate::service::Service;

pub(crate) async fn run(
    service: &Service,
    PutInput(input): PutInput<'_>,
) -> Result<Vec<u8>, Failure> {
    input.run(service).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input;
    use homeport_store::{Action, ReturnValues};

    #[track_caller]
    fn refused(body: &str) -> String {
        let PutInput(input) = input::read(body.as_bytes()).expect("well-formed");
        let failure = input.check().expect_err("refused");
        failure.text().unwrap_or_default().to_owned()
    }

    #[test]
    fn invalid_puts_get_dynamodb_errors_in_order() {
        for (body, text) in [
            (
                "{}",
                "2 validation errors detected: Value null at 'tableName' failed to satisfy constraint: Member must not be null; Value null at 'item' failed to satisfy constraint: Member must not be null",
            ),
            (
                r#"{"TableName":"","ReturnValues":"X"}"#,
                "1 validation error detected: Value at 'TableName' failed to satisfy constraint: Member must have length greater than or equal to 1",
            ),
            (
                r#"{"TableName":"abc","Item":{"a":{}},"ReturnValues":"X"}"#,
                "1 validation error detected: Failed to satisfy constraint: Member must satisfy enum value set: [ALL_OLD, UPDATED_OLD, ALL_NEW, UPDATE_NEW, NONE]",
            ),
            (
                r#"{"TableName":"abc","Item":{"a":{}},"ConditionExpression":"a","Expected":{}}"#,
                "1 validation error detected: Can not use both expression and non-expression parameters in the same request: Non-expression parameters: {Expected} Expression parameters: {ConditionExpression}",
            ),
            (
                r##"{"TableName":"abc","Item":{"a":{}},"ExpressionAttributeNames":{"#a":"b"}}"##,
                "1 validation error detected: ExpressionAttributeNames can only be specified when using expressions",
            ),
            (
                r#"{"TableName":"abc","Item":{"a":{}},"ReturnValues":"ALL_NEW"}"#,
                "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes",
            ),
            (
                r#"{"TableName":"abc","Item":{},"ReturnValues":"ALL_NEW"}"#,
                "1 validation error detected: ReturnValues can only be ALL_OLD or NONE",
            ),
            (
                r#"{"TableName":"abc","Item":{},"ConditionExpression":"","ExpressionAttributeValues":{}}"#,
                "1 validation error detected: ExpressionAttributeValues must not be empty",
            ),
            (
                r#"{"TableName":"abc","Item":{},"ConditionExpression":""}"#,
                "1 validation error detected: Invalid ConditionExpression: The expression can not be empty;",
            ),
            (
                r##"{"TableName":"abc","Item":{},"ConditionExpression":"attribute_exists(a)","ExpressionAttributeNames":{"#x":"b"}}"##,
                "1 validation error detected: Value provided in ExpressionAttributeNames unused in expressions: keys: {#x}",
            ),
            (
                r#"{"TableName":"abc","Item":{},"Expected":{"a":{}}}"#,
                "1 validation error detected: One or more parameter values were invalid: Value must be provided when Exists is null for Attribute: a",
            ),
            (
                r#"{"TableName":"abc","Item":{},"Expected":{"a":{}},"ConditionalOperator":"OR"}"#,
                "1 validation error detected: ConditionalOperator can only be used when Filter or Expected has two or more elements",
            ),
        ] {
            assert_eq!(refused(body), text, "{body}");
        }
    }

    #[test]
    fn complete_put_is_read() {
        let body = r#"{"TableName":"abc","Item":{"a":{"S":"x"}},"ConditionExpression":"attribute_not_exists(a)","ReturnValues":"ALL_OLD","ReturnValuesOnConditionCheckFailure":"ALL_OLD"}"#;
        let PutInput(input) = input::read(body.as_bytes()).expect("well-formed");
        let Ok(Action::Put(put)) = input.check() else {
            panic!("not a valid put: {body}");
        };
        assert_eq!(put.table, "abc");
        assert!(put.old_on_failure);
        assert!(put.condition.is_some());
        assert_eq!(put.returning, ReturnValues::AllOld);
    }
}
