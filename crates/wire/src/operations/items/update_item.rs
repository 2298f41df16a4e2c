//! UpdateItem: changes attributes of an item, or creates it.

use super::write_input::UpdateInput;
use crate::failure::Failure;
use crate::service::Service;

pub(crate) async fn run(
    service: &Service,
    UpdateInput(input): UpdateInput<'_>,
) -> Result<Vec<u8>, Failure> {
    input.run(service).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input;
    use homeport_store::Action;

    #[test]
    fn invalid_updates_get_dynamodb_errors() {
        for (body, text) in [
            (
                r#"{"TableName":"abc","Key":{},"ExpressionAttributeValues":{":a":{"S":"x"}}}"#,
                "1 validation error detected: ExpressionAttributeValues can only be specified when using expressions",
            ),
            (
                r#"{"TableName":"abc","Key":{},"UpdateExpression":"SET a = :b"}"#,
                "1 validation error detected: Invalid UpdateExpression: An expression attribute value used in expression is not defined; attribute value: :b",
            ),
            (
                r#"{"TableName":"abc","Key":{},"UpdateExpression":"SET a = :b","AttributeUpdates":{}}"#,
                "1 validation error detected: Can not use both expression and non-expression parameters in the same request: Non-expression parameters: {AttributeUpdates} Expression parameters: {UpdateExpression}",
            ),
            (
                r#"{"TableName":"abc","Key":{},"AttributeUpdates":{"a":{"Action":"ADD","Value":{"S":"x"}}}}"#,
                "1 validation error detected: One or more parameter values were invalid: ADD action is not supported for the type S",
            ),
            (
                r#"{"TableName":"abc","Key":{},"AttributeUpdates":{"a":{"Action":"SET","Value":{"S":"x"}}},"Expected":{"a":{}}}"#,
                "1 validation error detected: Member must satisfy enum value set: [ADD, DELETE, PUT]' for Action",
            ),
            (
                r#"{"TableName":"abc","Key":{},"ConditionalOperator":"OR","AttributeUpdates":{"a":{}}}"#,
                "1 validation error detected: ConditionalOperator cannot be used without Filter or Expected",
            ),
            (
                r#"{"TableName":"abc","Key":{},"UpdateExpression":"REMOVE a","ExpressionAttributeValues":{":a":{"S":"x"}}}"#,
                "1 validation error detected: Value provided in ExpressionAttributeValues unused in expressions: keys: {:a}",
            ),
        ] {
            let UpdateInput(input) = input::read(body.as_bytes()).expect("well-formed");
            let failure = input.check().expect_err("refused");
            assert_eq!(failure.text(), Some(text), "{body}");
        }
    }

    #[test]
    fn update_without_expressions_changes_nothing() {
        let body = br#"{"TableName":"abc","Key":{"a":{"S":"x"}}}"#;
        let UpdateInput(input) = input::read(body).expect("well-formed");
        let Ok(Action::Update(update)) = input.check() else {
            panic!("not a valid update");
        };
        assert!(update.update.is_empty());
    }
}
