//! DescribeContributorInsights: whether contributor insights of a table or an index are enabled.

use serde::Deserialize;

use crate::access::{Permission, Request, Resources};
use crate::constraints::Constraints;
use crate::failure::Failure;
use crate::input::Text;
use crate::output::{self, Object};
use crate::service::Service;
use crate::table_name;
use crate::tables::description::Seconds;
use crate::tables::insights::{Insights, Subject};
use crate::tables::settings::TableSettings;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Input<'a> {
    #[serde(borrow)]
    table_name: Option<Text<'a>>,
    #[serde(borrow)]
    index_name: Option<Text<'a>>,
}

impl<'a> Request<'a> for Input<'a> {
    fn permissions(&self, resources: &Resources<'_>) -> Vec<Permission> {
        vec![resources.table(self.table_name.as_ref())]
    }
}

pub(crate) async fn run(service: &Service, input: Input<'_>) -> Result<Vec<u8>, Failure> {
    let name = table_name::of_tables(input.table_name.as_ref())?;
    let mut constraints = Constraints::new();
    constraints.resource_name("indexName", input.index_name.as_ref());
    constraints.finish()?;
    let table = service.engine().describe_table(name)?;
    let settings = TableSettings::read(&table.settings);
    let subject = Subject::of(&table, input.index_name.as_ref())?;
    let found = subject.insights(&settings);
    let mut out = Vec::with_capacity(256);
    let mut object = Object::new(&mut out);
    subject.write(&mut object, found.map_or("DISABLED", Insights::status));
    if let Some(found) = found {
        object.text("ContributorInsightsMode", &found.mode);
        let changed_at = Seconds::from_ms(found.changed_at_ms);
        output::serialized(object.member("LastUpdateDateTime"), &changed_at)?;
        // There are no CloudWatch rules.
        object
            .member("ContributorInsightsRuleList")
            .extend_from_slice(b"[]");
    }
    object.end();
    Ok(out)
}
