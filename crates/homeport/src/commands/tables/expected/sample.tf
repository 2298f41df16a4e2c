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
  default     = "arn:aws:kms:eu-central-1:111122223333:key/7c9e6679"
  description = "ARN of the KMS key that encrypts the tables; if null, a key that AWS owns."
}

variable "point_in_time_recovery" {
  type        = bool
  default     = false
  description = "Whether tables can be restored to any second of the last 35 days."
}

variable "deletion_protection" {
  type        = bool
  default     = true
  description = "Whether tables are protected from being deleted."
}

variable "tags" {
  type        = map(string)
  default     = { "team" = "iot", "note" = "$${a} \"b\"" }
  description = "Tags of the tables and of the policies."
}

resource "aws_dynamodb_table" "all_things" {
  name                        = "all-things"
  billing_mode                = "PAY_PER_REQUEST"
  hash_key                    = "id"
  range_key                   = "at"
  deletion_protection_enabled = var.deletion_protection
  stream_enabled              = true
  stream_view_type            = "NEW_AND_OLD_IMAGES"
  tags                        = var.tags

  attribute {
    name = "id"
    type = "S"
  }

  attribute {
    name = "at"
    type = "N"
  }

  attribute {
    name = "state"
    type = "S"
  }

  attribute {
    name = "size"
    type = "N"
  }

  global_secondary_index {
    name               = "by-state"
    hash_key           = "state"
    projection_type    = "INCLUDE"
    non_key_attributes = ["note", "size"]
  }

  local_secondary_index {
    name            = "by-size"
    range_key       = "size"
    projection_type = "KEYS_ONLY"
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

resource "aws_dynamodb_table" "blobs" {
  name                        = "blobs"
  billing_mode                = "PAY_PER_REQUEST"
  hash_key                    = "hash"
  deletion_protection_enabled = var.deletion_protection
  tags                        = var.tags

  attribute {
    name = "hash"
    type = "B"
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
      "dynamodb:BatchWriteItem",
      "dynamodb:ConditionCheckItem",
      "dynamodb:GetItem",
    ]
    resources = [
      aws_dynamodb_table.all_things.arn,
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
      aws_dynamodb_table.all_things.arn,
      aws_dynamodb_table.blobs.arn,
    ]
  }

  statement {
    actions = [
      "dynamodb:Query",
      "dynamodb:Scan",
    ]
    resources = [
      "${aws_dynamodb_table.all_things.arn}/index/by-state",
      "${aws_dynamodb_table.all_things.arn}/index/by-size",
    ]
  }

  statement {
    actions = [
      "dynamodb:DescribeStream",
      "dynamodb:GetRecords",
      "dynamodb:GetShardIterator",
    ]
    resources = [
      "${aws_dynamodb_table.all_things.arn}/stream/*",
    ]
  }

  statement {
    actions = [
      "dynamodb:DeleteItem",
    ]
    resources = [
      aws_dynamodb_table.blobs.arn,
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

output "policy_arns" {
  description = "Attach all of them to the role that Homeport runs as."
  value = [
    aws_iam_policy.homeport_1.arn,
  ]
}
