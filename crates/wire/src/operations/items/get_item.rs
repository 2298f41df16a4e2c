//! GetItem: reads one item by its key.

use homeport_store::Get;
use serde::Deserialize;

use super::{reading, writing};
use crate::access::{self, Expressions, Permission, Request, RequestContext, Resources, Values};
use crate::capacity::{self, Consumed, Wanted};
use crate::constraints::{Constraints, RETURN_CAPACITY};
use crate::expressions;
use crate::failure::Failure;
use crate::input::{Attributes, Flag, Mapping, Text, Wording};
use crate::legacy;
use crate::output::Object;
use crate::service::Service;
use crate::table_name;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Input<'a> {
    #[serde(borrow)]
    table_name: Option<Text<'a>>,
    key: Option<Attributes>,
    consistent_read: Option<Flag>,
    #[serde(borrow)]
    projection_expression: Option<Text<'a>>,
    #[serde(borrow)]
    expression_attribute_names: Option<Mapping<'a, Text<'a>>>,
    #[serde(borrow)]
    return_consumed_capacity: Option<Text<'a>>,
    #[serde(borrow)]
    attributes_to_get: Option<legacy::AttributesToGet<'a>>,
}

impl<'a> Request<'a> for Input<'a> {
    fn permissions(&self, resources: &Resources<'_>) -> Vec<Permission> {
        let table = self.table_name.as_ref();
        let named = self.projection_expression.is_some() || self.attributes_to_get.is_some();
        let expressions = Expressions {
            names: self.expression_attribute_names.as_ref(),
            projection: self.projection_expression.as_ref(),
            ..Expressions::default()
        };
        let context = RequestContext {
            leading_keys: resources.leading_key(table, self.key.as_ref()),
            attributes: access::attributes_of(self.key.as_ref())
                .with(access::listed(self.attributes_to_get.as_ref()))
                .with(expressions.attributes()),
            select: Values::select(None, named, false),
            return_consumed_capacity: Values::given(self.return_consumed_capacity.as_ref()),
            ..RequestContext::default()
        };
        vec![resources.table(table).with(context)]
    }
}

pub(crate) async fn run(service: &Service, input: Input<'_>) -> Result<Vec<u8>, Failure> {
    let wanted = Wanted::of(input.return_consumed_capacity.as_ref());
    let get = check(input)?;
    if let Some(projection) = &get.projection {
        let table = service.engine().table(&get.table)?;
        expressions::check_key_paths(table.schema(), &projection.paths)?;
    }
    let found = service.engine().get_stored(&get)?;
    let size = match &found {
        Some(item) => item.size()?,
        None => 0,
    };
    let mut out = Vec::with_capacity(64 + size * 2);
    let mut object = Object::new(&mut out);
    if let Some(item) = &found {
        reading::write_item(item, get.projection.as_ref(), object.member("Item"))?;
    }
    let units = capacity::read_units(size, get.consistent);
    Consumed::of_table(units).write_member(&mut object, &get.table, wanted);
    object.end();
    Ok(out)
}

fn check(input: Input<'_>) -> Result<Get, Failure> {
    let mut constraints = Constraints::new();
    let table = table_name::of_items(input.table_name.as_ref(), &mut constraints)?.to_owned();
    constraints.not_null("key", input.key.as_ref());
    constraints.one_of(
        "returnConsumedCapacity",
        input.return_consumed_capacity.as_ref(),
        RETURN_CAPACITY,
    );
    legacy::constrain_names(
        &mut constraints,
        "attributesToGet",
        input.attributes_to_get.as_ref(),
    );
    constraints.finish()?;
    let expression = input.projection_expression.as_ref();
    let names = input.expression_attribute_names.as_ref();
    let attributes = input.attributes_to_get.as_ref();
    reading::check_projection(expression, names, attributes)?;
    let key = writing::attributes(input.key, Wording::Newer)?;
    let projection = reading::any_projection(expression, names, attributes)?;
    Ok(Get {
        table,
        key,
        projection,
        consistent: input.consistent_read.is_some_and(|flag| flag.0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input;

    #[test]
    fn invalid_gets_get_dynamodb_errors() {
        for (body, text) in [
            (
                "{}",
                "2 validation errors detected: Value null at 'tableName' failed to satisfy constraint: Member must not be null; Value null at 'key' failed to satisfy constraint: Member must not be null",
            ),
            (
                r#"{"TableName":"abc","Key":{},"ProjectionExpression":"!!! INVALID !!!"}"#,
                "Invalid ProjectionExpression: Syntax error; token: \"!\", near: \"!!\"",
            ),
            (
                r#"{"TableName":"abc","Key":{},"AttributesToGet":["a"],"ProjectionExpression":"a"}"#,
                "Can not use both expression and non-expression parameters in the same request: Non-expression parameters: {AttributesToGet} Expression parameters: {ProjectionExpression}",
            ),
            (
                r#"{"TableName":"abc","Key":{},"AttributesToGet":[]}"#,
                "1 validation error detected: Value '[]' at 'attributesToGet' failed to satisfy constraint: Member must have length greater than or equal to 1",
            ),
            (
                r#"{"TableName":"abc","Key":{},"AttributesToGet":["a","a"]}"#,
                "One or more parameter values were invalid: Duplicate value in attribute name: a",
            ),
            (
                r#"{"TableName":"abc","Key":{},"ExpressionAttributeNames":{}}"#,
                "ExpressionAttributeNames can only be specified when using expressions",
            ),
            (
                r#"{"TableName":"abc","Key":{},"ProjectionExpression":"a","ExpressionAttributeNames":{}}"#,
                "ExpressionAttributeNames must not be empty",
            ),
        ] {
            let input = input::read(body.as_bytes()).expect("well-formed");
            let failure = check(input).expect_err("refused");
            assert_eq!(failure.text(), Some(text), "{body}");
        }
    }
}
