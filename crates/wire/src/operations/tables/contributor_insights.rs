//! DescribeContributorInsights, UpdateContributorInsights and ListContributorInsights: whether contributor insights of tables
//! and indexes are enabled.

use serde::Deserialize;

use crate::access::one_resource;
use crate::constraints::Constraints;
use crate::failure::Failure;
use crate::input::{Integer, Text};
use crate::operations::page::{self, Page, PageMembers};
use crate::output::{self, Object};
use crate::service::Service;
use crate::table_name;
use crate::tables::description::Seconds;
use crate::tables::insights::{ACTIONS, Insights, MODES, Subject};
use crate::tables::settings::TableSettings;

const PAGE_MAX: i64 = 100;
const MEMBERS: PageMembers = PageMembers {
    entries: "ContributorInsightsSummaries",
    next: "NextToken",
};
/// Separates the table from the index in a token; names cannot contain it.
const TOKEN_SEPARATOR: char = '/';
const TOKEN_MAX_BYTES: usize = 1024;

/// The request of DescribeContributorInsights and UpdateContributorInsights. Only updates use the action and the mode.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct InsightsInput<'a> {
    #[serde(borrow)]
    table_name: Option<Text<'a>>,
    #[serde(borrow)]
    index_name: Option<Text<'a>>,
    #[serde(borrow)]
    contributor_insights_action: Option<Text<'a>>,
    #[serde(borrow)]
    contributor_insights_mode: Option<Text<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct ListInput<'a> {
    #[serde(borrow)]
    table_name: Option<Text<'a>>,
    #[serde(borrow)]
    next_token: Option<Text<'a>>,
    max_results: Option<Integer>,
}

one_resource!(InsightsInput, table, table_name);
one_resource!(ListInput, table, table_name);

pub(crate) async fn describe(
    service: &Service,
    input: InsightsInput<'_>,
) -> Result<Vec<u8>, Failure> {
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

pub(crate) async fn update(
    service: &Service,
    input: InsightsInput<'_>,
) -> Result<Vec<u8>, Failure> {
    let name = table_name::of_tables(input.table_name.as_ref())?;
    let action = input.contributor_insights_action.as_ref();
    let mode = input.contributor_insights_mode.as_ref();
    let mut constraints = Constraints::new();
    constraints.resource_name("indexName", input.index_name.as_ref());
    constraints.not_null("contributorInsightsAction", action);
    constraints.one_of("contributorInsightsAction", action, &ACTIONS);
    constraints.one_of("contributorInsightsMode", mode, &MODES);
    constraints.finish()?;
    let _change = service.begin_table_change().await;
    let table = service.engine().describe_table(name)?;
    let subject = Subject::of(&table, input.index_name.as_ref())?;
    let insights = Insights {
        is_enabled: action.is_some_and(|action| action.as_str() == "ENABLE"),
        mode: mode.map_or(MODES[0], Text::as_str).to_owned(),
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

pub(crate) async fn list(service: &Service, input: ListInput<'_>) -> Result<Vec<u8>, Failure> {
    let mut constraints = Constraints::new();
    constraints.at_most("maxResults", input.max_results, PAGE_MAX);
    constraints.text_length("nextToken", input.next_token.as_ref(), 1, TOKEN_MAX_BYTES);
    constraints.finish()?;
    // DynamoDB ignores a limit below 1.
    let limit = page::limit(input.max_results.filter(|limit| limit.0 >= 1), PAGE_MAX);
    let tables = match table_name::of_tables_if_given(input.table_name.as_ref())? {
        Some(name) => vec![service.engine().describe_table(name)?.schema.name],
        None => service.engine().table_names(),
    };
    let start = input
        .next_token
        .as_ref()
        .and_then(|token| token.as_str().split_once(TOKEN_SEPARATOR));
    let mut found: Vec<(String, String, Insights)> = Vec::new();
    for table in tables {
        if start.is_some_and(|(last, _)| table.as_str() < last) {
            continue;
        }
        // The table may have been deleted since its name was read.
        let Ok(description) = service.engine().describe_table(&table) else {
            continue;
        };
        for (index, insights) in TableSettings::read(&description.settings).insights {
            let is_after_start = start.is_none_or(|last| (table.as_str(), index.as_str()) > last);
            if is_after_start {
                found.push((table.clone(), index, insights));
            }
        }
        if found.len() > limit {
            break;
        }
    }
    Page::of(found, limit).respond(
        MEMBERS,
        |(table, index, insights), out| {
            let subject = Subject {
                table,
                index: Some(index.as_str()).filter(|name| !name.is_empty()),
            };
            let mut summary = Object::new(out);
            subject.write(&mut summary, insights.status());
            summary.text("ContributorInsightsMode", &insights.mode);
            summary.end();
            Ok(())
        },
        |(table, index, _)| format!("{table}{TOKEN_SEPARATOR}{index}"),
    )
}
