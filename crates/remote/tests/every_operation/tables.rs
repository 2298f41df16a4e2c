//! Tables, time to live, tags, limits and endpoints.

use aws_sdk_dynamodb::operation::create_table::CreateTableError;
use aws_sdk_dynamodb::operation::delete_table::DeleteTableError;
use aws_sdk_dynamodb::operation::describe_table::DescribeTableError;
use aws_sdk_dynamodb::types::{
    BillingMode, ContributorInsightsAction, ContributorInsightsStatus,
    CreateGlobalSecondaryIndexAction, GlobalSecondaryIndexUpdate, IndexStatus, KeyType,
    LocalSecondaryIndex, Projection, ProjectionType, ProvisionedThroughput, ScalarAttributeType,
    StreamSpecification, StreamViewType, TableStatus, Tag, TimeToLiveSpecification,
    TimeToLiveStatus,
};

use crate::sdk::{Sdk, definition, element, within};

pub(crate) async fn check(sdk: &Sdk) {
    check_life(sdk).await;
    check_time_to_live(sdk).await;
    check_tags(sdk).await;
    check_insights(sdk).await;
    check_service(sdk).await;
}

async fn check_life(sdk: &Sdk) {
    let local = LocalSecondaryIndex::builder()
        .index_name("by-rank")
        .key_schema(element("owner", KeyType::Hash))
        .key_schema(element("rank", KeyType::Range))
        .projection(
            Projection::builder()
                .projection_type(ProjectionType::KeysOnly)
                .build(),
        )
        .build()
        .expect("complete");
    let throughput = ProvisionedThroughput::builder()
        .read_capacity_units(3)
        .write_capacity_units(2)
        .build()
        .expect("complete");
    let request = sdk
        .tables
        .create_table()
        .table_name("lives")
        .attribute_definitions(definition("owner", ScalarAttributeType::S))
        .attribute_definitions(definition("at", ScalarAttributeType::N))
        .attribute_definitions(definition("rank", ScalarAttributeType::B))
        .key_schema(element("owner", KeyType::Hash))
        .key_schema(element("at", KeyType::Range))
        .local_secondary_indexes(local)
        .billing_mode(BillingMode::Provisioned)
        .provisioned_throughput(throughput.clone())
        .deletion_protection_enabled(true)
        .stream_specification(
            StreamSpecification::builder()
                .stream_enabled(true)
                .stream_view_type(StreamViewType::NewImage)
                .build()
                .expect("complete"),
        );
    let created = request.clone().send().await.expect("a table");
    let created = created.table_description.expect("a description");
    assert_eq!(created.table_status, Some(TableStatus::Active));
    assert_eq!(created.key_schema().len(), 2);
    assert_eq!(created.attribute_definitions().len(), 3);
    assert_eq!(created.local_secondary_indexes().len(), 1);
    assert!(created.creation_date_time.is_some());
    assert!(created.table_id.is_some());
    assert_eq!(created.deletion_protection_enabled, Some(true));
    assert!(created.latest_stream_arn.is_some());
    let provisioned = created.provisioned_throughput.expect("throughput");
    assert_eq!(provisioned.read_capacity_units, Some(3));
    assert_eq!(provisioned.write_capacity_units, Some(2));
    let again = request.send().await.expect_err("it exists");
    assert!(matches!(
        again.into_service_error(),
        CreateTableError::ResourceInUseException(_)
    ));
    let index = CreateGlobalSecondaryIndexAction::builder()
        .index_name("by-kind")
        .key_schema(element("kind", KeyType::Hash))
        .projection(
            Projection::builder()
                .projection_type(ProjectionType::Include)
                .non_key_attributes("note")
                .build(),
        )
        .provisioned_throughput(throughput)
        .build()
        .expect("complete");
    let updated = sdk
        .tables
        .update_table()
        .table_name("lives")
        .attribute_definitions(definition("kind", ScalarAttributeType::S))
        .global_secondary_index_updates(GlobalSecondaryIndexUpdate::builder().create(index).build())
        .send()
        .await
        .expect("a change");
    let updated = updated.table_description.expect("a description");
    assert_eq!(updated.global_secondary_indexes().len(), 1);
    let described = within(async || {
        let described = sdk.tables.describe_table().table_name("lives").send().await;
        let table = described.expect("an answer").table.expect("a table");
        let index = &table.global_secondary_indexes()[0];
        (index.index_status == Some(IndexStatus::Active)).then(|| table.clone())
    })
    .await;
    assert_eq!(described.item_count, Some(0));
    let projection = described.global_secondary_indexes()[0].projection.clone();
    let projection = projection.expect("a projection");
    assert_eq!(projection.non_key_attributes(), ["note"]);
    let refused = sdk.tables.delete_table().table_name("lives").send().await;
    let refused = refused.expect_err("it is protected").into_service_error();
    assert_eq!(refused.meta().code(), Some("ValidationException"));
    let update = || sdk.tables.update_table().table_name("lives");
    let unprotected = update().deletion_protection_enabled(false).send().await;
    unprotected.expect("a change");
    let on_demand = update().billing_mode(BillingMode::PayPerRequest);
    let on_demand = on_demand.send().await.expect("a change").table_description;
    let billing = on_demand.and_then(|table| table.billing_mode_summary);
    let billing = billing.expect("a summary").billing_mode;
    assert_eq!(billing, Some(BillingMode::PayPerRequest));
    let listed = sdk.tables.list_tables().limit(1).send().await;
    let listed = listed.expect("a page");
    assert_eq!(listed.table_names(), ["lives"]);
    let deleted = sdk.tables.delete_table().table_name("lives").send().await;
    let deleted = deleted.expect("gone").table_description;
    let deleted = deleted.expect("a description");
    assert_eq!(deleted.table_status, Some(TableStatus::Deleting));
    let gone = sdk.tables.delete_table().table_name("lives").send().await;
    assert!(matches!(
        gone.expect_err("gone").into_service_error(),
        DeleteTableError::ResourceNotFoundException(_)
    ));
    let gone = sdk.tables.describe_table().table_name("lives").send().await;
    let gone = gone.expect_err("gone").into_service_error();
    let DescribeTableError::ResourceNotFoundException(gone) = gone else {
        panic!("{gone:?}");
    };
    let expected = "Requested resource not found: Table: lives not found";
    assert_eq!(gone.message(), Some(expected));
}

async fn check_time_to_live(sdk: &Sdk) {
    sdk.create("mortal").await;
    let specification = TimeToLiveSpecification::builder()
        .enabled(true)
        .attribute_name("expires")
        .build()
        .expect("complete");
    let set = sdk
        .tables
        .update_time_to_live()
        .table_name("mortal")
        .time_to_live_specification(specification.clone())
        .send()
        .await
        .expect("set");
    assert_eq!(set.time_to_live_specification, Some(specification));
    let described = sdk.tables.describe_time_to_live().table_name("mortal");
    let described = described.send().await.expect("an answer");
    let described = described.time_to_live_description.expect("a description");
    assert_eq!(
        described.time_to_live_status,
        Some(TimeToLiveStatus::Enabled)
    );
    assert_eq!(described.attribute_name(), Some("expires"));
}

async fn check_tags(sdk: &Sdk) {
    let arn = sdk.create("tagged").await.table_arn.expect("an ARN");
    let tag = |key: &str, value: &str| {
        let tag = Tag::builder().key(key).value(value).build();
        tag.expect("complete")
    };
    sdk.tables
        .tag_resource()
        .resource_arn(&arn)
        .tags(tag("project", "homeport"))
        .tags(tag("env", ""))
        .send()
        .await
        .expect("tagged");
    let untag = sdk.tables.untag_resource().resource_arn(&arn);
    untag.tag_keys("env").send().await.expect("untagged");
    let listed = sdk.tables.list_tags_of_resource().resource_arn(&arn);
    let listed = listed.send().await.expect("a list");
    assert_eq!(listed.tags(), [tag("project", "homeport")]);
    assert_eq!(listed.next_token(), None);
}

async fn check_insights(sdk: &Sdk) {
    sdk.create("watched").await;
    let tables = &sdk.tables;
    tables
        .update_contributor_insights()
        .table_name("watched")
        .contributor_insights_action(ContributorInsightsAction::Enable)
        .send()
        .await
        .expect("switched on");
    let told = tables.describe_contributor_insights().table_name("watched");
    let told = told.send().await.expect("an answer");
    let expected = Some(ContributorInsightsStatus::Enabled);
    assert_eq!(told.contributor_insights_status, expected);
    let listed = tables.list_contributor_insights().send().await;
    let listed = listed.expect("a list").contributor_insights_summaries;
    let listed = listed.expect("summaries");
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].table_name(), Some("watched"));
}

async fn check_service(sdk: &Sdk) {
    let limits = sdk.tables.describe_limits().send().await.expect("limits");
    assert!(limits.account_max_read_capacity_units > Some(0));
    assert!(limits.table_max_write_capacity_units > Some(0));
    let endpoints = sdk.tables.describe_endpoints().send().await;
    let endpoints = endpoints.expect("endpoints").endpoints;
    assert_eq!(endpoints.len(), 1);
    assert!(!endpoints[0].address.is_empty());
    assert!(endpoints[0].cache_period_in_minutes > 0);
}
