//! UpdateTimeToLive: enables or disables the expiry of items, at once.

use serde::Deserialize;

use crate::access::one_resource;
use crate::constraints::Constraints;
use crate::failure::Failure;
use crate::input::{Field, Flag, Named, Text};
use crate::output::Object;
use crate::service::Service;
use crate::table_name;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Input<'a> {
    #[serde(borrow)]
    table_name: Option<Text<'a>>,
    #[serde(borrow)]
    time_to_live_specification: Option<Field<Specification<'a>>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Specification<'a> {
    #[serde(borrow)]
    attribute_name: Option<Text<'a>>,
    enabled: Option<Flag>,
}

impl Named for Specification<'_> {
    const NAME: &'static str = "TimeToLiveSpecification";
}

one_resource!(Input, table, table_name);

pub(crate) async fn run(service: &Service, input: Input<'_>) -> Result<Vec<u8>, Failure> {
    let (name, attribute, enabled) = check(&input)?;
    let _change = service.begin_table_change().await;
    let current = service.engine().describe_table(name)?.schema.ttl_attribute;
    match (&current, enabled) {
        (None, false) => return Err(Failure::validation("TimeToLive is already disabled")),
        (Some(current), _) if current != attribute => {
            return Err(Failure::validation(format!(
                "TimeToLive is active on a different AttributeName: current AttributeName is {current}"
            )));
        }
        (Some(_), true) => return Err(Failure::validation("TimeToLive is already enabled")),
        _ => {}
    }
    // DIFFERENCE: DynamoDB takes up to an hour and rejects other changes meanwhile.
    let wanted = enabled.then_some(attribute);
    service.engine().set_ttl(name, wanted).await?;
    let mut out = Vec::with_capacity(96);
    let mut object = Object::new(&mut out);
    object.object("TimeToLiveSpecification", |object| {
        let flag: &[u8] = if enabled { b"true" } else { b"false" };
        object.member("Enabled").extend_from_slice(flag);
        object.text("AttributeName", attribute);
    });
    object.end();
    Ok(out)
}

fn check<'a>(input: &'a Input<'_>) -> Result<(&'a str, &'a str, bool), Failure> {
    let name = table_name::of_tables(input.table_name.as_ref())?;
    let mut constraints = Constraints::new();
    let specification = input.time_to_live_specification.as_ref();
    constraints.not_null("timeToLiveSpecification", specification);
    let attribute = specification.and_then(|Field(given)| given.attribute_name.as_ref());
    let enabled = specification.and_then(|Field(given)| given.enabled);
    if specification.is_some() {
        constraints.not_null("timeToLiveSpecification.attributeName", attribute);
        constraints.text_length("timeToLiveSpecification.attributeName", attribute, 1, 255);
        constraints.not_null("timeToLiveSpecification.enabled", enabled.as_ref());
    }
    constraints.finish()?;
    Ok((
        name,
        attribute.map_or("", Text::as_str),
        enabled.is_some_and(|flag| flag.0),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input;

    #[test]
    fn invalid_requests_get_dynamodb_errors() {
        for (body, text) in [
            (
                r#"{"TableName":"abc"}"#,
                "1 validation error detected: Value null at 'timeToLiveSpecification' failed to satisfy constraint: Member must not be null",
            ),
            (
                r#"{"TableName":"abc","TimeToLiveSpecification":{"AttributeName":""}}"#,
                "2 validation errors detected: Value '' at 'timeToLiveSpecification.attributeName' failed to satisfy constraint: Member must have length greater than or equal to 1; Value null at 'timeToLiveSpecification.enabled' failed to satisfy constraint: Member must not be null",
            ),
        ] {
            let input: Input<'_> = input::read(body.as_bytes()).expect("well-formed");
            let failure = check(&input).expect_err("refused");
            assert_eq!(failure.text(), Some(text), "{body}");
        }
    }
}
