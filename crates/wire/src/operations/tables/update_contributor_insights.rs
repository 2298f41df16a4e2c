//! UpdateContributorInsights: enables or disables contributor insights of a table or an index.

use serde::Deserialize;

use crate::access::{Permission, Request, Resources};
use crate::constraints::Constraints;
use crate::failure::Failure;
use crate::input::Text;
use crate::output::Object;
use crate::service::Service;
use crate::table_name;
use crate::tables::insights::{ACTIONS, Insights, MODES, Subject};
use crate::tables::settings::TableSettings;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Input<'a> {
    #[serde(borrow)]
    table_name: Option<Text<'a>>,
    #[serde(borrow)]
    index_name: Option<Text<'a>>,
    #[serde(borrow)]
    contributor_insights_action: Option<Text<'a>>,
    #[serde(borrow)]
    contributor_insights_mode: Option<Text<'a>>,
}

impl<'a> Request<'a> for Input<'a> {
    fn permissions(&self, resources: &Resources<'_>) -> Vec<Permission> {
        vec![resources.table(self.table_name.as_ref())]
    }
}

pub(crate) async fn run(service: &Service, input: Input<'_>) -> Result<Vec<u8>, Failure> {
    let name = table_name::of_tables(input.table_name.as_ref())?;
    check(&input)?;
    let _change = service.begin_table_change().await;
    let table = service.engine().describe_table(name)?;
    let subject = Subject::of(&table, input.index_name.as_ref())?;
    let action = input.contributor_insights_action.as_ref();
    let insights = Insights {
        is_enabled: action.is_some_and(|action| action.as_str() == "ENABLE"),
        mode: input
            .contributor_insights_mode
            .as_ref()
            .map_or(MODES[0], Text::as_str)
            .to_owned(),
        changed_at_ms: service.config().clock.now_ms(),
    };
    let key = subject.key().to_owned();
    let kept = insights.clone();
    service
        .engine()
        .change_settings(name, move |settings| {
            let mut settings = TableSettings::read(settings);
            settings.insights.insert(key, kept);
            Ok::<_, Failure>(settings.write())
        })
        .await?;
    let mut out = Vec::with_capacity(160);
    let mut object = Object::new(&mut out);
    // DynamoDB's response; here the change is already done.
    let status = if insights.is_enabled {
        "ENABLING"
    } else {
        "DISABLING"
    };
    subject.write(&mut object, status);
    object.text("ContributorInsightsMode", &insights.mode);
    object.end();
    Ok(out)
}

fn check(input: &Input<'_>) -> Result<(), Failure> {
    let mut constraints = Constraints::new();
    constraints.resource_name("indexName", input.index_name.as_ref());
    let action = input.contributor_insights_action.as_ref();
    constraints.not_null("contributorInsightsAction", action);
    constraints.one_of("contributorInsightsAction", action, &ACTIONS);
    let mode = input.contributor_insights_mode.as_ref();
    constraints.one_of("contributorInsightsMode", mode, &MODES);
    constraints.finish()
}
