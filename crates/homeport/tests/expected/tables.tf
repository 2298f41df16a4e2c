# Homeport's tables and the permissions it needs on them, as `homeport tables terraform` prints them.

terraform {
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.0"
    }
  }
}

variable "kms_key_arn" {
  type        = string
  default     = null
  description = "ARN of the KMS key that encrypts the tables; if null, a key that AWS owns."
}

variable "point_in_time_recovery" {
  type        = bool
  default     = true
  description = "Whether tables can be restored to any second of the last 35 days."
}

variable "deletion_protection" {
  type        = bool
  default     = false
  description = "Whether tables are protected from being deleted."
}

variable "tags" {
  type        = map(string)
  default     = {}
  description = "Tags of the tables and of the policies."
}

resource "aws_dynamodb_table" "devices" {
  name                        = "devices"
  billing_mode                = "PAY_PER_REQUEST"
  hash_key                    = "hardware_id"
  deletion_protection_enabled = var.deletion_protection
  tags                        = var.tags

  attribute {
    name = "hardware_id"
    type = "S"
  }

  attribute {
    name = "gsi1pk"
    type = "S"
  }

  attribute {
    name = "gsi1sk"
    type = "S"
  }

  global_secondary_index {
    name            = "gsi1"
    hash_key        = "gsi1pk"
    range_key       = "gsi1sk"
    projection_type = "ALL"
  }

  point_in_time_recovery {
    enabled = var.point_in_time_recovery
  }

  server_side_encryption {
    enabled     = var.kms_key_arn != null
    kms_key_arn = var.kms_key_arn
  }

  lifecycle {
    prevent_destroy = true
    ignore_changes  = [stream_enabled, stream_view_type]
  }
}

resource "aws_dynamodb_table" "device_readings" {
  name                        = "device_readings"
  billing_mode                = "PAY_PER_REQUEST"
  hash_key                    = "hardware_id"
  range_key                   = "ts_batch"
  deletion_protection_enabled = var.deletion_protection
  tags                        = var.tags

  attribute {
    name = "hardware_id"
    type = "S"
  }

  attribute {
    name = "ts_batch"
    type = "S"
  }

  ttl {
    attribute_name = "expiration_time"
    enabled        = true
  }

  point_in_time_recovery {
    enabled = var.point_in_time_recovery
  }

  server_side_encryption {
    enabled     = var.kms_key_arn != null
    kms_key_arn = var.kms_key_arn
  }

  lifecycle {
    prevent_destroy = true
    ignore_changes  = [stream_enabled, stream_view_type]
  }
}

resource "aws_dynamodb_table" "processed_batches" {
  name                        = "processed_batches"
  billing_mode                = "PAY_PER_REQUEST"
  hash_key                    = "batch_id"
  deletion_protection_enabled = var.deletion_protection
  tags                        = var.tags

  attribute {
    name = "batch_id"
    type = "S"
  }

  ttl {
    attribute_name = "expiration_time"
    enabled        = true
  }

  point_in_time_recovery {
    enabled = var.point_in_time_recovery
  }

  server_side_encryption {
    enabled     = var.kms_key_arn != null
    kms_key_arn = var.kms_key_arn
  }

  lifecycle {
    prevent_destroy = true
  }
}

resource "aws_dynamodb_table" "evse_events" {
  name                        = "evse-events"
  billing_mode                = "PAY_PER_REQUEST"
  hash_key                    = "device_id"
  range_key                   = "timestamp_mt"
  deletion_protection_enabled = var.deletion_protection
  stream_enabled              = true
  stream_view_type            = "NEW_IMAGE"
  tags                        = var.tags

  attribute {
    name = "device_id"
    type = "S"
  }

  attribute {
    name = "timestamp_mt"
    type = "S"
  }

  attribute {
    name = "event_type"
    type = "S"
  }

  global_secondary_index {
    name            = "event-type-index"
    hash_key        = "event_type"
    range_key       = "timestamp_mt"
    projection_type = "ALL"
  }

  point_in_time_recovery {
    enabled = var.point_in_time_recovery
  }

  server_side_encryption {
    enabled     = var.kms_key_arn != null
    kms_key_arn = var.kms_key_arn
  }

  lifecycle {
    prevent_destroy = true
  }
}

resource "aws_dynamodb_table" "evse_device_state" {
  name                        = "evse-device-state"
  billing_mode                = "PAY_PER_REQUEST"
  hash_key                    = "device_id"
  deletion_protection_enabled = var.deletion_protection
  tags                        = var.tags

  attribute {
    name = "device_id"
    type = "S"
  }

  point_in_time_recovery {
    enabled = var.point_in_time_recovery
  }

  server_side_encryption {
    enabled     = var.kms_key_arn != null
    kms_key_arn = var.kms_key_arn
  }

  lifecycle {
    prevent_destroy = true
    ignore_changes  = [stream_enabled, stream_view_type]
  }
}

resource "aws_dynamodb_table" "evse_devices" {
  name                        = "evse-devices"
  billing_mode                = "PAY_PER_REQUEST"
  hash_key                    = "device_id"
  deletion_protection_enabled = var.deletion_protection
  tags                        = var.tags

  attribute {
    name = "device_id"
    type = "S"
  }

  point_in_time_recovery {
    enabled = var.point_in_time_recovery
  }

  server_side_encryption {
    enabled     = var.kms_key_arn != null
    kms_key_arn = var.kms_key_arn
  }

  lifecycle {
    prevent_destroy = true
  }
}

resource "aws_dynamodb_table" "evse_daily_stats" {
  name                        = "evse-daily-stats"
  billing_mode                = "PAY_PER_REQUEST"
  hash_key                    = "device_id"
  range_key                   = "date"
  deletion_protection_enabled = var.deletion_protection
  tags                        = var.tags

  attribute {
    name = "device_id"
    type = "S"
  }

  attribute {
    name = "date"
    type = "S"
  }

  point_in_time_recovery {
    enabled = var.point_in_time_recovery
  }

  server_side_encryption {
    enabled     = var.kms_key_arn != null
    kms_key_arn = var.kms_key_arn
  }

  lifecycle {
    prevent_destroy = true
  }
}

resource "aws_dynamodb_table" "homeport_charger_decoders" {
  name                        = "homeport-charger-decoders"
  billing_mode                = "PAY_PER_REQUEST"
  hash_key                    = "pk"
  range_key                   = "sk"
  deletion_protection_enabled = var.deletion_protection
  tags                        = var.tags

  attribute {
    name = "pk"
    type = "S"
  }

  attribute {
    name = "sk"
    type = "S"
  }

  point_in_time_recovery {
    enabled = var.point_in_time_recovery
  }

  server_side_encryption {
    enabled     = var.kms_key_arn != null
    kms_key_arn = var.kms_key_arn
  }

  lifecycle {
    prevent_destroy = true
  }
}

resource "aws_dynamodb_table" "photoeditor_dev_device_tokens" {
  name                        = "photoeditor-dev-device-tokens"
  billing_mode                = "PAY_PER_REQUEST"
  hash_key                    = "userId"
  range_key                   = "deviceId"
  deletion_protection_enabled = var.deletion_protection
  tags                        = var.tags

  attribute {
    name = "userId"
    type = "S"
  }

  attribute {
    name = "deviceId"
    type = "S"
  }

  ttl {
    attribute_name = "expiresAt"
    enabled        = true
  }

  point_in_time_recovery {
    enabled = var.point_in_time_recovery
  }

  server_side_encryption {
    enabled     = var.kms_key_arn != null
    kms_key_arn = var.kms_key_arn
  }

  lifecycle {
    prevent_destroy = true
    ignore_changes  = [stream_enabled, stream_view_type]
  }
}

resource "aws_dynamodb_table" "homeport_notifications" {
  name                        = "homeport-notifications"
  billing_mode                = "PAY_PER_REQUEST"
  hash_key                    = "pk"
  range_key                   = "sk"
  deletion_protection_enabled = var.deletion_protection
  tags                        = var.tags

  attribute {
    name = "pk"
    type = "S"
  }

  attribute {
    name = "sk"
    type = "S"
  }

  attribute {
    name = "work"
    type = "S"
  }

  attribute {
    name = "due_at_ms"
    type = "N"
  }

  global_secondary_index {
    name            = "work"
    hash_key        = "work"
    range_key       = "due_at_ms"
    projection_type = "ALL"
  }

  ttl {
    attribute_name = "forget_at"
    enabled        = true
  }

  point_in_time_recovery {
    enabled = var.point_in_time_recovery
  }

  server_side_encryption {
    enabled     = var.kms_key_arn != null
    kms_key_arn = var.kms_key_arn
  }

  lifecycle {
    prevent_destroy = true
    ignore_changes  = [stream_enabled, stream_view_type]
  }
}

resource "aws_dynamodb_table" "awsh_recordstore_dev" {
  name                        = "awsh-recordstore-dev"
  billing_mode                = "PAY_PER_REQUEST"
  hash_key                    = "PK"
  range_key                   = "SK"
  deletion_protection_enabled = var.deletion_protection
  stream_enabled              = true
  stream_view_type            = "NEW_IMAGE"
  tags                        = var.tags

  attribute {
    name = "PK"
    type = "S"
  }

  attribute {
    name = "SK"
    type = "S"
  }

  point_in_time_recovery {
    enabled = var.point_in_time_recovery
  }

  server_side_encryption {
    enabled     = var.kms_key_arn != null
    kms_key_arn = var.kms_key_arn
  }

  lifecycle {
    prevent_destroy = true
    ignore_changes  = [stream_enabled, stream_view_type]
  }
}

resource "aws_dynamodb_table" "homeport_record_ids" {
  name                        = "homeport-record-ids"
  billing_mode                = "PAY_PER_REQUEST"
  hash_key                    = "PK"
  range_key                   = "SK"
  deletion_protection_enabled = var.deletion_protection
  tags                        = var.tags

  attribute {
    name = "PK"
    type = "S"
  }

  attribute {
    name = "SK"
    type = "S"
  }

  ttl {
    attribute_name = "forget_at"
    enabled        = true
  }

  point_in_time_recovery {
    enabled = var.point_in_time_recovery
  }

  server_side_encryption {
    enabled     = var.kms_key_arn != null
    kms_key_arn = var.kms_key_arn
  }

  lifecycle {
    prevent_destroy = true
  }
}

resource "aws_dynamodb_table" "homeport_alert_definitions" {
  name                        = "homeport-alert-definitions"
  billing_mode                = "PAY_PER_REQUEST"
  hash_key                    = "shelf"
  range_key                   = "definition_id"
  deletion_protection_enabled = var.deletion_protection
  tags                        = var.tags

  attribute {
    name = "shelf"
    type = "S"
  }

  attribute {
    name = "definition_id"
    type = "S"
  }

  point_in_time_recovery {
    enabled = var.point_in_time_recovery
  }

  server_side_encryption {
    enabled     = var.kms_key_arn != null
    kms_key_arn = var.kms_key_arn
  }

  lifecycle {
    prevent_destroy = true
  }
}

resource "aws_dynamodb_table" "homeport_alert_watches" {
  name                        = "homeport-alert-watches"
  billing_mode                = "PAY_PER_REQUEST"
  hash_key                    = "definition_id"
  range_key                   = "device"
  deletion_protection_enabled = var.deletion_protection
  tags                        = var.tags

  attribute {
    name = "definition_id"
    type = "S"
  }

  attribute {
    name = "device"
    type = "S"
  }

  attribute {
    name = "waits"
    type = "S"
  }

  attribute {
    name = "due_at_ms"
    type = "N"
  }

  global_secondary_index {
    name            = "silence"
    hash_key        = "waits"
    range_key       = "due_at_ms"
    projection_type = "ALL"
  }

  point_in_time_recovery {
    enabled = var.point_in_time_recovery
  }

  server_side_encryption {
    enabled     = var.kms_key_arn != null
    kms_key_arn = var.kms_key_arn
  }

  lifecycle {
    prevent_destroy = true
  }
}

resource "aws_dynamodb_table" "homeport_alerts" {
  name                        = "homeport-alerts"
  billing_mode                = "PAY_PER_REQUEST"
  hash_key                    = "alert_id"
  deletion_protection_enabled = var.deletion_protection
  tags                        = var.tags

  attribute {
    name = "alert_id"
    type = "S"
  }

  attribute {
    name = "all"
    type = "S"
  }

  attribute {
    name = "open"
    type = "S"
  }

  global_secondary_index {
    name            = "all"
    hash_key        = "all"
    range_key       = "alert_id"
    projection_type = "ALL"
  }

  global_secondary_index {
    name            = "open"
    hash_key        = "open"
    range_key       = "alert_id"
    projection_type = "ALL"
  }

  ttl {
    attribute_name = "forget_at"
    enabled        = true
  }

  point_in_time_recovery {
    enabled = var.point_in_time_recovery
  }

  server_side_encryption {
    enabled     = var.kms_key_arn != null
    kms_key_arn = var.kms_key_arn
  }

  lifecycle {
    prevent_destroy = true
    ignore_changes  = [stream_enabled, stream_view_type]
  }
}

resource "aws_dynamodb_table" "homeport_alert_outbox" {
  name                        = "homeport-alert-outbox"
  billing_mode                = "PAY_PER_REQUEST"
  hash_key                    = "alert_id"
  range_key                   = "notification"
  deletion_protection_enabled = var.deletion_protection
  tags                        = var.tags

  attribute {
    name = "alert_id"
    type = "S"
  }

  attribute {
    name = "notification"
    type = "S"
  }

  attribute {
    name = "work"
    type = "S"
  }

  attribute {
    name = "due_at_ms"
    type = "N"
  }

  global_secondary_index {
    name            = "work"
    hash_key        = "work"
    range_key       = "due_at_ms"
    projection_type = "ALL"
  }

  ttl {
    attribute_name = "forget_at"
    enabled        = true
  }

  point_in_time_recovery {
    enabled = var.point_in_time_recovery
  }

  server_side_encryption {
    enabled     = var.kms_key_arn != null
    kms_key_arn = var.kms_key_arn
  }

  lifecycle {
    prevent_destroy = true
  }
}

resource "aws_dynamodb_table" "van_telemetry" {
  name                        = "van-telemetry"
  billing_mode                = "PAY_PER_REQUEST"
  hash_key                    = "thing_name"
  range_key                   = "timestamp"
  deletion_protection_enabled = var.deletion_protection
  tags                        = var.tags

  attribute {
    name = "thing_name"
    type = "S"
  }

  attribute {
    name = "timestamp"
    type = "N"
  }

  attribute {
    name = "message_type"
    type = "S"
  }

  attribute {
    name = "severity"
    type = "S"
  }

  global_secondary_index {
    name            = "MessageTypeIndex"
    hash_key        = "message_type"
    range_key       = "timestamp"
    projection_type = "ALL"
  }

  global_secondary_index {
    name            = "AlertSeverityIndex"
    hash_key        = "severity"
    range_key       = "timestamp"
    projection_type = "ALL"
  }

  ttl {
    attribute_name = "ttl"
    enabled        = true
  }

  point_in_time_recovery {
    enabled = var.point_in_time_recovery
  }

  server_side_encryption {
    enabled     = var.kms_key_arn != null
    kms_key_arn = var.kms_key_arn
  }

  lifecycle {
    prevent_destroy = true
    ignore_changes  = [stream_enabled, stream_view_type]
  }
}

resource "aws_dynamodb_table" "homeport_rules" {
  name                        = "homeport-rules"
  billing_mode                = "PAY_PER_REQUEST"
  hash_key                    = "pk"
  range_key                   = "sk"
  deletion_protection_enabled = var.deletion_protection
  tags                        = var.tags

  attribute {
    name = "pk"
    type = "S"
  }

  attribute {
    name = "sk"
    type = "S"
  }

  point_in_time_recovery {
    enabled = var.point_in_time_recovery
  }

  server_side_encryption {
    enabled     = var.kms_key_arn != null
    kms_key_arn = var.kms_key_arn
  }

  lifecycle {
    prevent_destroy = true
  }
}

resource "aws_dynamodb_table" "homeport_rule_requests" {
  name                        = "homeport-rule-requests"
  billing_mode                = "PAY_PER_REQUEST"
  hash_key                    = "request_id"
  deletion_protection_enabled = var.deletion_protection
  tags                        = var.tags

  attribute {
    name = "request_id"
    type = "S"
  }

  attribute {
    name = "work"
    type = "S"
  }

  attribute {
    name = "due_at_ms"
    type = "N"
  }

  global_secondary_index {
    name            = "work"
    hash_key        = "work"
    range_key       = "due_at_ms"
    projection_type = "ALL"
  }

  ttl {
    attribute_name = "forget_at"
    enabled        = true
  }

  point_in_time_recovery {
    enabled = var.point_in_time_recovery
  }

  server_side_encryption {
    enabled     = var.kms_key_arn != null
    kms_key_arn = var.kms_key_arn
  }

  lifecycle {
    prevent_destroy = true
  }
}

resource "aws_dynamodb_table" "homeport_mqtt_sessions" {
  name                        = "homeport-mqtt-sessions"
  billing_mode                = "PAY_PER_REQUEST"
  hash_key                    = "session"
  deletion_protection_enabled = var.deletion_protection
  tags                        = var.tags

  attribute {
    name = "session"
    type = "S"
  }

  ttl {
    attribute_name = "expires_at"
    enabled        = true
  }

  point_in_time_recovery {
    enabled = var.point_in_time_recovery
  }

  server_side_encryption {
    enabled     = var.kms_key_arn != null
    kms_key_arn = var.kms_key_arn
  }

  lifecycle {
    prevent_destroy = true
  }
}

resource "aws_dynamodb_table" "homeport_mqtt_queue" {
  name                        = "homeport-mqtt-queue"
  billing_mode                = "PAY_PER_REQUEST"
  hash_key                    = "queue_id"
  range_key                   = "sequence"
  deletion_protection_enabled = var.deletion_protection
  tags                        = var.tags

  attribute {
    name = "queue_id"
    type = "S"
  }

  attribute {
    name = "sequence"
    type = "N"
  }

  ttl {
    attribute_name = "expires_at"
    enabled        = true
  }

  point_in_time_recovery {
    enabled = var.point_in_time_recovery
  }

  server_side_encryption {
    enabled     = var.kms_key_arn != null
    kms_key_arn = var.kms_key_arn
  }

  lifecycle {
    prevent_destroy = true
  }
}

resource "aws_dynamodb_table" "homeport_mqtt_retained" {
  name                        = "homeport-mqtt-retained"
  billing_mode                = "PAY_PER_REQUEST"
  hash_key                    = "topic"
  deletion_protection_enabled = var.deletion_protection
  tags                        = var.tags

  attribute {
    name = "topic"
    type = "S"
  }

  ttl {
    attribute_name = "expires_at"
    enabled        = true
  }

  point_in_time_recovery {
    enabled = var.point_in_time_recovery
  }

  server_side_encryption {
    enabled     = var.kms_key_arn != null
    kms_key_arn = var.kms_key_arn
  }

  lifecycle {
    prevent_destroy = true
  }
}

resource "aws_dynamodb_table" "homeport_reactions" {
  name                        = "homeport-reactions"
  billing_mode                = "PAY_PER_REQUEST"
  hash_key                    = "reaction"
  deletion_protection_enabled = var.deletion_protection
  tags                        = var.tags

  attribute {
    name = "reaction"
    type = "S"
  }

  point_in_time_recovery {
    enabled = var.point_in_time_recovery
  }

  server_side_encryption {
    enabled     = var.kms_key_arn != null
    kms_key_arn = var.kms_key_arn
  }

  lifecycle {
    prevent_destroy = true
  }
}

resource "aws_dynamodb_table" "homeport_removals" {
  name                        = "homeport-removals"
  billing_mode                = "PAY_PER_REQUEST"
  hash_key                    = "system"
  range_key                   = "device"
  deletion_protection_enabled = var.deletion_protection
  tags                        = var.tags

  attribute {
    name = "system"
    type = "S"
  }

  attribute {
    name = "device"
    type = "S"
  }

  point_in_time_recovery {
    enabled = var.point_in_time_recovery
  }

  server_side_encryption {
    enabled     = var.kms_key_arn != null
    kms_key_arn = var.kms_key_arn
  }

  lifecycle {
    prevent_destroy = true
  }
}

resource "aws_dynamodb_table" "api_keys" {
  name                        = "api_keys"
  billing_mode                = "PAY_PER_REQUEST"
  hash_key                    = "key_id"
  deletion_protection_enabled = var.deletion_protection
  tags                        = var.tags

  attribute {
    name = "key_id"
    type = "S"
  }

  attribute {
    name = "api_key_hash"
    type = "S"
  }

  attribute {
    name = "gsi1pk"
    type = "S"
  }

  attribute {
    name = "gsi1sk"
    type = "S"
  }

  global_secondary_index {
    name            = "api_key_hash_index"
    hash_key        = "api_key_hash"
    projection_type = "ALL"
  }

  global_secondary_index {
    name            = "gsi1"
    hash_key        = "gsi1pk"
    range_key       = "gsi1sk"
    projection_type = "ALL"
  }

  point_in_time_recovery {
    enabled = var.point_in_time_recovery
  }

  server_side_encryption {
    enabled     = var.kms_key_arn != null
    kms_key_arn = var.kms_key_arn
  }

  lifecycle {
    prevent_destroy = true
  }
}

resource "aws_dynamodb_table" "homeport_secret_checks" {
  name                        = "homeport-secret-checks"
  billing_mode                = "PAY_PER_REQUEST"
  hash_key                    = "secret"
  deletion_protection_enabled = var.deletion_protection
  tags                        = var.tags

  attribute {
    name = "secret"
    type = "S"
  }

  point_in_time_recovery {
    enabled = var.point_in_time_recovery
  }

  server_side_encryption {
    enabled     = var.kms_key_arn != null
    kms_key_arn = var.kms_key_arn
  }

  lifecycle {
    prevent_destroy = true
  }
}

resource "aws_dynamodb_table" "homeport_people" {
  name                        = "homeport-people"
  billing_mode                = "PAY_PER_REQUEST"
  hash_key                    = "partition"
  range_key                   = "name"
  deletion_protection_enabled = var.deletion_protection
  tags                        = var.tags

  attribute {
    name = "partition"
    type = "S"
  }

  attribute {
    name = "name"
    type = "S"
  }

  point_in_time_recovery {
    enabled = var.point_in_time_recovery
  }

  server_side_encryption {
    enabled     = var.kms_key_arn != null
    kms_key_arn = var.kms_key_arn
  }

  lifecycle {
    prevent_destroy = true
  }
}

resource "aws_dynamodb_table" "homeport_credentials" {
  name                        = "homeport-credentials"
  billing_mode                = "PAY_PER_REQUEST"
  hash_key                    = "person_id"
  range_key                   = "credential_id"
  deletion_protection_enabled = var.deletion_protection
  tags                        = var.tags

  attribute {
    name = "person_id"
    type = "S"
  }

  attribute {
    name = "credential_id"
    type = "S"
  }

  ttl {
    attribute_name = "expires_at"
    enabled        = true
  }

  point_in_time_recovery {
    enabled = var.point_in_time_recovery
  }

  server_side_encryption {
    enabled     = var.kms_key_arn != null
    kms_key_arn = var.kms_key_arn
  }

  lifecycle {
    prevent_destroy = true
  }
}

data "aws_iam_policy_document" "homeport_1" {
  statement {
    actions = [
      "dynamodb:BatchGetItem",
      "dynamodb:DeleteItem",
      "dynamodb:GetItem",
      "dynamodb:PutItem",
      "dynamodb:UpdateItem",
      "dynamodb:UpdateTable",
    ]
    resources = [
      aws_dynamodb_table.devices.arn,
    ]
  }

  statement {
    actions = [
      "dynamodb:DescribeContinuousBackups",
      "dynamodb:DescribeTable",
      "dynamodb:DescribeTimeToLive",
      "dynamodb:ListTagsOfResource",
    ]
    resources = [
      aws_dynamodb_table.devices.arn,
      aws_dynamodb_table.device_readings.arn,
      aws_dynamodb_table.processed_batches.arn,
      aws_dynamodb_table.evse_events.arn,
      aws_dynamodb_table.evse_device_state.arn,
      aws_dynamodb_table.evse_devices.arn,
      aws_dynamodb_table.evse_daily_stats.arn,
      aws_dynamodb_table.homeport_charger_decoders.arn,
      aws_dynamodb_table.photoeditor_dev_device_tokens.arn,
      aws_dynamodb_table.homeport_notifications.arn,
      aws_dynamodb_table.awsh_recordstore_dev.arn,
      aws_dynamodb_table.homeport_record_ids.arn,
    ]
  }

  statement {
    actions = [
      "dynamodb:Query",
    ]
    resources = [
      "${aws_dynamodb_table.devices.arn}/index/gsi1",
      "${aws_dynamodb_table.evse_events.arn}/index/event-type-index",
      "${aws_dynamodb_table.homeport_notifications.arn}/index/work",
    ]
  }

  statement {
    actions = [
      "dynamodb:DescribeStream",
      "dynamodb:GetRecords",
      "dynamodb:GetShardIterator",
    ]
    resources = [
      "${aws_dynamodb_table.devices.arn}/stream/*",
      "${aws_dynamodb_table.device_readings.arn}/stream/*",
      "${aws_dynamodb_table.evse_events.arn}/stream/*",
      "${aws_dynamodb_table.evse_device_state.arn}/stream/*",
      "${aws_dynamodb_table.photoeditor_dev_device_tokens.arn}/stream/*",
      "${aws_dynamodb_table.homeport_notifications.arn}/stream/*",
      "${aws_dynamodb_table.awsh_recordstore_dev.arn}/stream/*",
    ]
  }

  statement {
    actions = [
      "dynamodb:BatchWriteItem",
      "dynamodb:DeleteItem",
      "dynamodb:PutItem",
      "dynamodb:Query",
      "dynamodb:UpdateTable",
    ]
    resources = [
      aws_dynamodb_table.device_readings.arn,
    ]
  }

  statement {
    actions = [
      "dynamodb:BatchWriteItem",
      "dynamodb:PutItem",
    ]
    resources = [
      aws_dynamodb_table.processed_batches.arn,
    ]
  }

  statement {
    actions = [
      "dynamodb:BatchWriteItem",
      "dynamodb:DeleteItem",
      "dynamodb:PutItem",
      "dynamodb:Query",
    ]
    resources = [
      aws_dynamodb_table.evse_events.arn,
      aws_dynamodb_table.evse_daily_stats.arn,
    ]
  }

  statement {
    actions = [
      "dynamodb:BatchGetItem",
      "dynamodb:BatchWriteItem",
      "dynamodb:DeleteItem",
      "dynamodb:GetItem",
      "dynamodb:Query",
      "dynamodb:Scan",
      "dynamodb:UpdateItem",
      "dynamodb:UpdateTable",
    ]
    resources = [
      aws_dynamodb_table.evse_device_state.arn,
    ]
  }

  statement {
    actions = [
      "dynamodb:BatchGetItem",
      "dynamodb:ConditionCheckItem",
      "dynamodb:DeleteItem",
      "dynamodb:GetItem",
      "dynamodb:Scan",
      "dynamodb:UpdateItem",
    ]
    resources = [
      aws_dynamodb_table.evse_devices.arn,
    ]
  }

  statement {
    actions = [
      "dynamodb:DeleteItem",
      "dynamodb:GetItem",
      "dynamodb:PutItem",
      "dynamodb:Query",
      "dynamodb:UpdateItem",
    ]
    resources = [
      aws_dynamodb_table.homeport_charger_decoders.arn,
    ]
  }

  statement {
    actions = [
      "dynamodb:BatchGetItem",
      "dynamodb:ConditionCheckItem",
      "dynamodb:DeleteItem",
      "dynamodb:GetItem",
      "dynamodb:PutItem",
      "dynamodb:Query",
      "dynamodb:Scan",
      "dynamodb:UpdateItem",
      "dynamodb:UpdateTable",
    ]
    resources = [
      aws_dynamodb_table.photoeditor_dev_device_tokens.arn,
    ]
  }

  statement {
    actions = [
      "dynamodb:BatchGetItem",
      "dynamodb:DeleteItem",
      "dynamodb:GetItem",
      "dynamodb:PutItem",
      "dynamodb:Query",
      "dynamodb:UpdateItem",
      "dynamodb:UpdateTable",
    ]
    resources = [
      aws_dynamodb_table.homeport_notifications.arn,
    ]
  }

  statement {
    actions = [
      "dynamodb:BatchGetItem",
      "dynamodb:BatchWriteItem",
      "dynamodb:ConditionCheckItem",
      "dynamodb:DeleteItem",
      "dynamodb:GetItem",
      "dynamodb:PutItem",
      "dynamodb:Query",
      "dynamodb:Scan",
      "dynamodb:UpdateItem",
      "dynamodb:UpdateTable",
    ]
    resources = [
      aws_dynamodb_table.awsh_recordstore_dev.arn,
    ]
  }

  statement {
    actions = [
      "dynamodb:GetItem",
      "dynamodb:PutItem",
    ]
    resources = [
      aws_dynamodb_table.homeport_record_ids.arn,
    ]
  }

  dynamic "statement" {
    for_each = var.kms_key_arn == null ? [] : [var.kms_key_arn]
    content {
      actions = [
        "kms:CreateGrant",
        "kms:Decrypt",
        "kms:DescribeKey",
        "kms:Encrypt",
        "kms:GenerateDataKey*",
        "kms:ReEncrypt*",
      ]
      resources = [statement.value]
      condition {
        test     = "StringLike"
        variable = "kms:ViaService"
        values   = ["dynamodb.*.amazonaws.com"]
      }
    }
  }
}

resource "aws_iam_policy" "homeport_1" {
  name_prefix = "homeport-"
  description = "Homeport's access to its tables."
  policy      = data.aws_iam_policy_document.homeport_1.json
  tags        = var.tags
}

data "aws_iam_policy_document" "homeport_2" {
  statement {
    actions = [
      "dynamodb:ConditionCheckItem",
      "dynamodb:DeleteItem",
      "dynamodb:GetItem",
      "dynamodb:PutItem",
      "dynamodb:Query",
      "dynamodb:UpdateItem",
    ]
    resources = [
      aws_dynamodb_table.homeport_alert_definitions.arn,
    ]
  }

  statement {
    actions = [
      "dynamodb:DescribeContinuousBackups",
      "dynamodb:DescribeTable",
      "dynamodb:DescribeTimeToLive",
      "dynamodb:ListTagsOfResource",
    ]
    resources = [
      aws_dynamodb_table.homeport_alert_definitions.arn,
      aws_dynamodb_table.homeport_alert_watches.arn,
      aws_dynamodb_table.homeport_alerts.arn,
      aws_dynamodb_table.homeport_alert_outbox.arn,
      aws_dynamodb_table.van_telemetry.arn,
      aws_dynamodb_table.homeport_rules.arn,
      aws_dynamodb_table.homeport_rule_requests.arn,
      aws_dynamodb_table.homeport_mqtt_sessions.arn,
      aws_dynamodb_table.homeport_mqtt_queue.arn,
      aws_dynamodb_table.homeport_mqtt_retained.arn,
      aws_dynamodb_table.homeport_reactions.arn,
      aws_dynamodb_table.homeport_removals.arn,
      aws_dynamodb_table.api_keys.arn,
      aws_dynamodb_table.homeport_secret_checks.arn,
    ]
  }

  statement {
    actions = [
      "dynamodb:BatchGetItem",
      "dynamodb:DeleteItem",
      "dynamodb:GetItem",
      "dynamodb:PutItem",
      "dynamodb:Query",
    ]
    resources = [
      aws_dynamodb_table.homeport_alert_watches.arn,
    ]
  }

  statement {
    actions = [
      "dynamodb:Query",
    ]
    resources = [
      "${aws_dynamodb_table.homeport_alert_watches.arn}/index/silence",
      "${aws_dynamodb_table.homeport_alerts.arn}/index/all",
      "${aws_dynamodb_table.homeport_alerts.arn}/index/open",
      "${aws_dynamodb_table.homeport_alert_outbox.arn}/index/work",
      "${aws_dynamodb_table.van_telemetry.arn}/index/MessageTypeIndex",
      "${aws_dynamodb_table.van_telemetry.arn}/index/AlertSeverityIndex",
      "${aws_dynamodb_table.homeport_rule_requests.arn}/index/work",
      "${aws_dynamodb_table.api_keys.arn}/index/api_key_hash_index",
      "${aws_dynamodb_table.api_keys.arn}/index/gsi1",
    ]
  }

  statement {
    actions = [
      "dynamodb:GetItem",
      "dynamodb:PutItem",
      "dynamodb:UpdateItem",
      "dynamodb:UpdateTable",
    ]
    resources = [
      aws_dynamodb_table.homeport_alerts.arn,
    ]
  }

  statement {
    actions = [
      "dynamodb:DescribeStream",
      "dynamodb:GetRecords",
      "dynamodb:GetShardIterator",
    ]
    resources = [
      "${aws_dynamodb_table.homeport_alerts.arn}/stream/*",
      "${aws_dynamodb_table.van_telemetry.arn}/stream/*",
    ]
  }

  statement {
    actions = [
      "dynamodb:GetItem",
      "dynamodb:PutItem",
      "dynamodb:Query",
      "dynamodb:UpdateItem",
    ]
    resources = [
      aws_dynamodb_table.homeport_alert_outbox.arn,
    ]
  }

  statement {
    actions = [
      "dynamodb:GetItem",
      "dynamodb:PutItem",
      "dynamodb:Query",
      "dynamodb:Scan",
      "dynamodb:UpdateTable",
    ]
    resources = [
      aws_dynamodb_table.van_telemetry.arn,
    ]
  }

  statement {
    actions = [
      "dynamodb:DeleteItem",
      "dynamodb:GetItem",
      "dynamodb:PutItem",
      "dynamodb:Query",
      "dynamodb:UpdateItem",
    ]
    resources = [
      aws_dynamodb_table.homeport_rules.arn,
    ]
  }

  statement {
    actions = [
      "dynamodb:DeleteItem",
      "dynamodb:PutItem",
      "dynamodb:UpdateItem",
    ]
    resources = [
      aws_dynamodb_table.homeport_rule_requests.arn,
    ]
  }

  statement {
    actions = [
      "dynamodb:DeleteItem",
      "dynamodb:PutItem",
      "dynamodb:Scan",
      "dynamodb:UpdateItem",
    ]
    resources = [
      aws_dynamodb_table.homeport_mqtt_sessions.arn,
    ]
  }

  statement {
    actions = [
      "dynamodb:BatchWriteItem",
      "dynamodb:Query",
    ]
    resources = [
      aws_dynamodb_table.homeport_mqtt_queue.arn,
    ]
  }

  statement {
    actions = [
      "dynamodb:BatchGetItem",
      "dynamodb:PutItem",
      "dynamodb:Scan",
    ]
    resources = [
      aws_dynamodb_table.homeport_mqtt_retained.arn,
    ]
  }

  statement {
    actions = [
      "dynamodb:GetItem",
      "dynamodb:PutItem",
    ]
    resources = [
      aws_dynamodb_table.homeport_reactions.arn,
      aws_dynamodb_table.homeport_secret_checks.arn,
    ]
  }

  statement {
    actions = [
      "dynamodb:ConditionCheckItem",
      "dynamodb:DeleteItem",
      "dynamodb:GetItem",
      "dynamodb:PutItem",
      "dynamodb:Query",
    ]
    resources = [
      aws_dynamodb_table.homeport_removals.arn,
    ]
  }

  statement {
    actions = [
      "dynamodb:BatchGetItem",
      "dynamodb:GetItem",
      "dynamodb:PutItem",
      "dynamodb:UpdateItem",
    ]
    resources = [
      aws_dynamodb_table.api_keys.arn,
    ]
  }
}

resource "aws_iam_policy" "homeport_2" {
  name_prefix = "homeport-"
  description = "Homeport's access to its tables."
  policy      = data.aws_iam_policy_document.homeport_2.json
  tags        = var.tags
}

data "aws_iam_policy_document" "homeport_3" {
  statement {
    actions = [
      "dynamodb:DeleteItem",
      "dynamodb:GetItem",
      "dynamodb:PutItem",
      "dynamodb:Query",
    ]
    resources = [
      aws_dynamodb_table.homeport_people.arn,
    ]
  }

  statement {
    actions = [
      "dynamodb:DescribeContinuousBackups",
      "dynamodb:DescribeTable",
      "dynamodb:DescribeTimeToLive",
      "dynamodb:ListTagsOfResource",
    ]
    resources = [
      aws_dynamodb_table.homeport_people.arn,
      aws_dynamodb_table.homeport_credentials.arn,
    ]
  }

  statement {
    actions = [
      "dynamodb:DeleteItem",
      "dynamodb:GetItem",
      "dynamodb:PutItem",
      "dynamodb:Query",
      "dynamodb:UpdateItem",
    ]
    resources = [
      aws_dynamodb_table.homeport_credentials.arn,
    ]
  }
}

resource "aws_iam_policy" "homeport_3" {
  name_prefix = "homeport-"
  description = "Homeport's access to its tables."
  policy      = data.aws_iam_policy_document.homeport_3.json
  tags        = var.tags
}

output "policy_arns" {
  description = "Attach all of them to the role that Homeport runs as."
  value = [
    aws_iam_policy.homeport_1.arn,
    aws_iam_policy.homeport_2.arn,
    aws_iam_policy.homeport_3.arn,
  ]
}
