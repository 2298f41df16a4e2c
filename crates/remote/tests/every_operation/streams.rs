//! Streams, with the SDK's client for them.

use aws_sdk_dynamodb::types::{StreamSpecification, StreamViewType};
use aws_sdk_dynamodbstreams::operation::describe_stream::DescribeStreamError;
use aws_sdk_dynamodbstreams::types::{
    AttributeValue, KeyType, OperationType, ShardIteratorType, StreamStatus,
};

use crate::sdk::Sdk;

pub(crate) async fn check(sdk: &Sdk) {
    sdk.create("flowing").await;
    let specification = StreamSpecification::builder()
        .stream_enabled(true)
        .stream_view_type(StreamViewType::NewAndOldImages)
        .build()
        .expect("complete");
    let changed = sdk.tables.update_table().table_name("flowing");
    let changed = changed.stream_specification(specification).send().await;
    let changed = changed.expect("a change").table_description;
    let arn = changed.and_then(|table| table.latest_stream_arn);
    let arn = arn.expect("an ARN");
    sdk.put("flowing", "a").await;
    let delete = sdk.tables.delete_item().table_name("flowing");
    let delete = delete.key("id", crate::sdk::text("a")).send().await;
    delete.expect("a removal");
    let listed = sdk.streams.list_streams().table_name("flowing");
    let listed = listed.send().await.expect("a list");
    assert_eq!(listed.streams().len(), 1);
    assert_eq!(listed.streams()[0].stream_arn(), Some(arn.as_str()));
    let described = sdk.streams.describe_stream().stream_arn(&arn).send().await;
    let described = described.expect("an answer").stream_description;
    let described = described.expect("a description");
    assert_eq!(described.stream_status, Some(StreamStatus::Enabled));
    assert_eq!(described.table_name(), Some("flowing"));
    assert_eq!(described.key_schema()[0].key_type, KeyType::Hash);
    let shard = &described.shards()[0];
    let range = shard.sequence_number_range.as_ref().expect("a range");
    assert_eq!(range.ending_sequence_number(), None);
    let iterator = sdk
        .streams
        .get_shard_iterator()
        .stream_arn(&arn)
        .shard_id(shard.shard_id().expect("an id"))
        .shard_iterator_type(ShardIteratorType::TrimHorizon)
        .send()
        .await
        .expect("an iterator");
    let iterator = iterator.shard_iterator().expect("an iterator");
    let records = sdk.streams.get_records().shard_iterator(iterator);
    let records = records.limit(10).send().await.expect("records");
    assert!(records.next_shard_iterator().is_some());
    let kinds: Vec<_> = records
        .records()
        .iter()
        .map(|record| record.event_name.clone().expect("a kind"))
        .collect();
    assert_eq!(kinds, [OperationType::Insert, OperationType::Remove]);
    let first = records.records()[0].dynamodb.as_ref().expect("content");
    let image = first.new_image.as_ref().expect("an image");
    assert_eq!(image["id"], AttributeValue::S("a".to_owned()));
    assert!(first.old_image.is_none());
    assert!(first.size_bytes > Some(0));
    assert!(first.approximate_creation_date_time.is_some());
    let missing = format!("{arn}0");
    let missing = sdk.streams.describe_stream().stream_arn(missing).send();
    assert!(matches!(
        missing.await.expect_err("none").into_service_error(),
        DescribeStreamError::ResourceNotFoundException(_)
    ));
}
