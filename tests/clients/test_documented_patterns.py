"""The tables, expressions and commands of the five systems, word for word as their designs wrote them."""

import time
from decimal import Decimal

import pytest

from tables import create_table, index, plain, plain_items, refused, values, wait_for_index

DAY_SECS = 24 * 3600


def query(dynamodb, table, condition, plain_values, **more):
    answer = dynamodb.query(
        TableName=table, KeyConditionExpression=condition, ExpressionAttributeValues=values(plain_values), **more
    )
    return plain_items(answer)


class TestSensors:
    """`homeport serve` makes these four tables itself, so the clients find them there."""

    HARDWARE_ID = "AA:BB:CC:DD:EE:FF"
    BOOT_ID = "7c9e6679-7425-40de-944b-e07fc1f90ae7"

    @classmethod
    def batch_id(cls, end_ms):
        return f"{cls.HARDWARE_ID}_{cls.BOOT_ID}_1704067200000_{end_ms}"

    @classmethod
    def reading(cls, timestamp_ms):
        batch_id = cls.batch_id(timestamp_ms)
        return {
            "hardware_id": cls.HARDWARE_ID,
            "ts_batch": f"{timestamp_ms:013}#{batch_id}",
            "timestamp_ms": timestamp_ms,
            "batch_id": batch_id,
            "boot_id": cls.BOOT_ID,
            "firmware_version": "1.0.16",
            "sensors": {"bme280_temp_c": Decimal("22.5"), "pressure_hpa": Decimal("1013.25")},
            "sensor_status": {"bme280": "ok"},
            "expiration_time": int(time.time()) + 90 * DAY_SECS,
        }

    @classmethod
    def store_once(cls, dynamodb, timestamp_ms):
        marker = {
            "batch_id": cls.batch_id(timestamp_ms),
            "hardware_id": cls.HARDWARE_ID,
            "received_at": "2024-01-15T14:22:00Z",
            "expiration_time": int(time.time()) + 30 * DAY_SECS,
        }
        put_marker = {
            "TableName": "processed_batches",
            "Item": values(marker),
            "ConditionExpression": "attribute_not_exists(batch_id)",
        }
        put_reading = {"TableName": "device_readings", "Item": values(cls.reading(timestamp_ms))}
        dynamodb.transact_write_items(TransactItems=[{"Put": put_marker}, {"Put": put_reading}])

    @pytest.fixture(scope="class")
    @classmethod
    def times_ms(cls, dynamodb):
        """Four readings, the first and last of them on the edges of the range asked for."""
        times_ms = [1704067199999, 1704067200000, 1704067800000, 1704067800001]
        for timestamp_ms in times_ms:
            cls.store_once(dynamodb, timestamp_ms)
        return times_ms

    def test_latest_reading(self, dynamodb, times_ms):
        found = query(
            dynamodb, "device_readings", "hardware_id = :hw_id", {":hw_id": self.HARDWARE_ID}, ScanIndexForward=False, Limit=1
        )
        assert found == [self.reading(times_ms[-1]) | {"expiration_time": found[0]["expiration_time"]}]

    def test_time_range(self, dynamodb, times_ms):
        found = query(
            dynamodb,
            "device_readings",
            "hardware_id = :hw_id AND ts_batch BETWEEN :from AND :to",
            {":hw_id": self.HARDWARE_ID, ":from": "1704067200000#", ":to": "1704067800000#\uffff"},
        )
        assert [reading["timestamp_ms"] for reading in found] == times_ms[1:3]

    def test_a_batch_is_stored_once(self, dynamodb, times_ms):
        before = dynamodb.scan(TableName="device_readings", Select="COUNT")["Count"]
        with refused("TransactionCanceledException", "[ConditionalCheckFailed, None]"):
            self.store_once(dynamodb, times_ms[0])
        assert dynamodb.scan(TableName="device_readings", Select="COUNT")["Count"] == before

    def test_devices_by_last_activity(self, dynamodb):
        for number, seen in enumerate(["2024-01-15T14:22:00Z", "2024-01-16T00:00:00Z"]):
            device = {
                "hardware_id": f"AA:BB:CC:DD:EE:0{number}",
                "confirmation_id": "550e8400-e29b-41d4-a716-446655440000",
                "capabilities": {"sensors": ["bme280"], "features": {"tft_display": True}},
                "first_registered_at": "2024-01-15T10:30:00Z",
                "last_seen_at": seen,
                "last_boot_id": self.BOOT_ID,
                "firmware_version": "1.0.16",
                "gsi1pk": "devices",
                "gsi1sk": seen,
            }
            dynamodb.put_item(TableName="devices", Item=values(device))
        dynamodb.update_item(
            TableName="devices",
            Key=values({"hardware_id": "AA:BB:CC:DD:EE:00"}),
            UpdateExpression="SET friendly_name = :name",
            ExpressionAttributeValues=values({":name": "greenhouse-sensor-01"}),
        )
        found = query(
            dynamodb, "devices", "gsi1pk = :pk", {":pk": "devices"}, IndexName="gsi1", ScanIndexForward=False
        )
        assert [device["gsi1sk"] for device in found] == ["2024-01-16T00:00:00Z", "2024-01-15T14:22:00Z"]
        assert found[1]["friendly_name"] == "greenhouse-sensor-01"

    def test_keys_by_hash_and_by_creation(self, dynamodb):
        api_key_hash = "5e884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d1542d8"
        key_id = "a1b2c3d4-e5f6-7890-abcd-ef1234567890"
        api_key = {
            "key_id": key_id,
            "api_key_hash": api_key_hash,
            "created_at": "2024-01-10T08:00:00Z",
            "is_active": True,
            "gsi1pk": "api_keys",
            "gsi1sk": "2024-01-10T08:00:00Z",
        }
        dynamodb.put_item(TableName="api_keys", Item=values(api_key))
        by_hash = {"IndexName": "api_key_hash_index"}
        assert query(dynamodb, "api_keys", "api_key_hash = :hash", {":hash": api_key_hash}, **by_hash) == [api_key]
        for expression, value in [("SET last_used_at = :v", "2024-01-15T14:22:00Z"), ("SET is_active = :v", False)]:
            dynamodb.update_item(
                TableName="api_keys",
                Key=values({"key_id": key_id}),
                UpdateExpression=expression,
                ExpressionAttributeValues=values({":v": value}),
            )
        listed = query(dynamodb, "api_keys", "gsi1pk = :pk", {":pk": "api_keys"}, IndexName="gsi1", ScanIndexForward=False)
        mine = next(found for found in listed if found["key_id"] == key_id)
        assert (mine["is_active"], mine["last_used_at"]) == (False, "2024-01-15T14:22:00Z")


class TestChargers:
    """`homeport serve` makes these four tables itself, so the clients find them there."""

    DEVICE_ID = "SC-A1B2C3D4"

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def events(cls, dynamodb):
        events = [
            (cls.DEVICE_ID, "2026-02-21 14:30:00.000", "telemetry"),
            (cls.DEVICE_ID, "2026-02-21 14:45:00.000", "ota_start"),
            ("SC-00000001", "2026-02-21 15:00:00.000", "ota_start"),
        ]
        for device_id, timestamp_mt, event_type in events:
            event = {"device_id": device_id, "timestamp_mt": timestamp_mt, "event_type": event_type}
            dynamodb.put_item(TableName="evse-events", Item=values(event))

    def test_a_type_across_the_fleet_newest_first(self, dynamodb):
        found = query(
            dynamodb,
            "evse-events",
            "event_type = :type",
            {":type": "ota_start"},
            IndexName="event-type-index",
            ScanIndexForward=False,
        )
        found = [event for event in found if event["timestamp_mt"].startswith("2026-02-21")]
        assert [event["device_id"] for event in found] == ["SC-00000001", self.DEVICE_ID]

    def test_a_type_of_one_device_by_filter(self, dynamodb):
        found = query(
            dynamodb,
            "evse-events",
            "device_id = :id AND timestamp_mt BETWEEN :from AND :to",
            {":id": self.DEVICE_ID, ":from": "2026-02-21", ":to": "2026-02-22", ":type": "telemetry"},
            FilterExpression="event_type = :type",
        )
        assert [event["timestamp_mt"] for event in found] == ["2026-02-21 14:30:00.000"]

    def test_the_state_of_the_fleet_is_one_scan(self, dynamodb):
        for paused in (True, False):
            dynamodb.update_item(
                TableName="evse-device-state",
                Key=values({"device_id": self.DEVICE_ID}),
                UpdateExpression="SET scheduler_paused = :paused, time_sync_at = :at",
                ExpressionAttributeValues=values({":paused": paused, ":at": 1708425600000}),
            )
        states = plain_items(dynamodb.scan(TableName="evse-device-state"))
        states = [state for state in states if state["device_id"] == self.DEVICE_ID]
        assert states == [{"device_id": self.DEVICE_ID, "scheduler_paused": False, "time_sync_at": 1708425600000}]


class TestPush:
    TABLE = "photoeditor-test-device-tokens"
    KEY = values({"userId": "user-1", "deviceId": "device-1"})
    TOKEN = {
        "userId": "user-1",
        "deviceId": "device-1",
        "expoPushToken": "ExponentPushToken[one]",
        "platform": "ios",
        "registeredAt": "2026-01-01T00:00:00.000Z",
        "updatedAt": "2026-01-01T00:00:00.000Z",
        "isActive": True,
    }

    @pytest.fixture(autouse=True)
    def table(self, dynamodb):
        create_table(dynamodb, self.TABLE, {"userId": "S", "deviceId": "S"}, "userId", "deviceId")
        expiry = {"Enabled": True, "AttributeName": "expiresAt"}
        dynamodb.update_time_to_live(TableName=self.TABLE, TimeToLiveSpecification=expiry)
        yield
        dynamodb.delete_table(TableName=self.TABLE)

    def expires_at(self):
        return int(time.time()) + 90 * DAY_SECS

    def register(self, dynamodb, **changed):
        dynamodb.put_item(
            TableName=self.TABLE,
            Item=values({**self.TOKEN, "expiresAt": self.expires_at(), **changed}),
            ConditionExpression="attribute_not_exists(userId) OR attribute_not_exists(deviceId)",
        )

    def stored(self, dynamodb):
        return dynamodb.get_item(TableName=self.TABLE, Key=self.KEY, ConsistentRead=True).get("Item")

    def test_pattern_1_registers_a_device_once(self, dynamodb):
        self.register(dynamodb)
        with refused("ConditionalCheckFailedException"):
            self.register(dynamodb)

    def test_pattern_2_updates_a_token_that_exists(self, dynamodb):
        request = {
            "TableName": self.TABLE,
            "Key": self.KEY,
            "UpdateExpression": "SET expoPushToken = :token, updatedAt = :now, isActive = :active, expiresAt = :expires",
            "ConditionExpression": "attribute_exists(userId)",
            "ExpressionAttributeValues": values(
                {":token": "ExponentPushToken[two]", ":now": "2026-02-01", ":active": True, ":expires": self.expires_at()}
            ),
        }
        with refused("ConditionalCheckFailedException"):
            dynamodb.update_item(**request)
        self.register(dynamodb)
        dynamodb.update_item(**request)
        assert plain(self.stored(dynamodb))["expoPushToken"] == "ExponentPushToken[two]"

    def test_pattern_3_gets_one_token(self, dynamodb):
        assert self.stored(dynamodb) is None
        self.register(dynamodb)
        assert plain(self.stored(dynamodb))["platform"] == "ios"

    def test_pattern_4_finds_the_active_devices_of_a_user(self, dynamodb):
        self.register(dynamodb)
        self.register(dynamodb, deviceId="device-2", isActive=False)
        self.register(dynamodb, userId="user-2")
        found = query(
            dynamodb,
            self.TABLE,
            "userId = :userId",
            {":userId": "user-1", ":true": True},
            FilterExpression="isActive = :true",
        )
        assert [token["deviceId"] for token in found] == ["device-1"]

    def test_pattern_5_deactivates_a_token(self, dynamodb):
        self.register(dynamodb)
        dynamodb.update_item(
            TableName=self.TABLE,
            Key=self.KEY,
            UpdateExpression="SET isActive = :false, updatedAt = :now",
            ConditionExpression="attribute_exists(userId)",
            ExpressionAttributeValues=values({":false": False, ":now": "2026-02-01"}),
        )
        assert plain(self.stored(dynamodb))["isActive"] is False

    def test_pattern_6_deletes_a_token_that_exists(self, dynamodb):
        request = {"TableName": self.TABLE, "Key": self.KEY, "ConditionExpression": "attribute_exists(userId)"}
        self.register(dynamodb)
        dynamodb.delete_item(**request)
        assert self.stored(dynamodb) is None
        with refused("ConditionalCheckFailedException"):
            dynamodb.delete_item(**request)

    def test_the_cleanup_command_finds_tokens_to_remove(self, dynamodb, aws):
        self.register(dynamodb, isActive=False, updatedAt="2025-01-01")
        self.register(dynamodb, deviceId="device-2", isActive=False, updatedAt="2026-03-01")
        self.register(dynamodb, deviceId="device-3")
        found = aws(
            "scan",
            "--table-name", "photoeditor-test-device-tokens",
            "--filter-expression", "isActive = :false AND updatedAt < :cutoff",
            "--projection-expression", "userId, deviceId",
            "--expression-attribute-values", '{":false": {"BOOL": false}, ":cutoff": {"S": "2026-02-01"}}',
        )  # fmt: skip
        assert [plain(item) for item in found["Items"]] == [{"userId": "user-1", "deviceId": "device-1"}]

    def test_a_boolean_cannot_be_the_sort_key_of_the_index_that_was_considered(self, dynamodb):
        """Key attributes are strings, numbers or bytes, so a query by a boolean finds no match for its type."""
        dynamodb.update_table(
            TableName=self.TABLE,
            AttributeDefinitions=[
                {"AttributeName": "platform", "AttributeType": "S"},
                {"AttributeName": "isActive", "AttributeType": "S"},
            ],
            GlobalSecondaryIndexUpdates=[{"Create": index("PlatformIsActiveIndex", "platform", "isActive")}],
        )
        assert wait_for_index(dynamodb, self.TABLE, "PlatformIsActiveIndex") == "ACTIVE"
        request = {"IndexName": "PlatformIsActiveIndex"}
        condition = "platform = :platform AND isActive = :true"
        with refused("ValidationException", "Condition parameter type does not match schema type"):
            query(dynamodb, self.TABLE, condition, {":platform": "ios", ":true": True}, **request)
        assert query(dynamodb, self.TABLE, condition, {":platform": "ios", ":true": "true"}, **request) == []


class TestTelemetry:
    TABLE = "van-telemetry"
    VAN = "storyteller-van-01"
    NOW_MS = 1733529600000
    HOUR_MS = 3600 * 1000

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def table(cls, dynamodb):
        # The server has made the table: telemetry is one of its systems.
        for minutes in range(120):
            message_type = {0: "status", 1: "alert"}.get(minutes % 30, "telemetry")
            message = {
                "thing_name": cls.VAN,
                "timestamp": cls.NOW_MS - minutes * 60 * 1000,
                "message_type": message_type,
                "battery_voltage": Decimal("13.2"),
                "glycol_temp": 72,
                "pdm1": {"1": True, "2": False},
                "hvac_mode": "heat",
                "ttl": cls.NOW_MS + 30 * 24 * cls.HOUR_MS,
            }
            dynamodb.put_item(TableName=cls.TABLE, Item=values(message))

    def test_the_newest_telemetry_of_a_device(self, dynamodb):
        found = query(
            dynamodb,
            self.TABLE,
            "thing_name = :thing AND #timestamp > :from",
            {":thing": self.VAN, ":from": self.NOW_MS - self.HOUR_MS},
            ExpressionAttributeNames={"#timestamp": "timestamp"},
            ScanIndexForward=False,
            Limit=10,
        )
        assert [message["timestamp"] for message in found] == [self.NOW_MS - minute * 60000 for minute in range(10)]

    def test_every_alert_of_the_last_day(self, dynamodb):
        found = query(
            dynamodb,
            self.TABLE,
            "message_type = :type AND #timestamp > :from",
            {":type": "alert", ":from": self.NOW_MS - 24 * self.HOUR_MS},
            ExpressionAttributeNames={"#timestamp": "timestamp"},
            IndexName="MessageTypeIndex",
        )
        assert len(found) == 4

    def test_a_limit_counts_before_the_filter(self, dynamodb):
        """The newest message is a status here; with any other on top, a limit of one would find nothing."""
        found = query(
            dynamodb,
            self.TABLE,
            "thing_name = :thing",
            {":thing": self.VAN, ":type": "status"},
            FilterExpression="message_type = :type",
            Limit=1,
            ScanIndexForward=False,
        )
        assert [message["timestamp"] for message in found] == [self.NOW_MS]

    def test_a_time_range(self, dynamodb):
        found = query(
            dynamodb,
            self.TABLE,
            "thing_name = :thing AND #timestamp BETWEEN :start AND :end",
            {":thing": self.VAN, ":start": self.NOW_MS - 5 * 60000, ":end": self.NOW_MS},
            ExpressionAttributeNames={"#timestamp": "timestamp"},
        )
        assert len(found) == 6


class TestRecords:
    # Not the stage whose table the server makes by itself.
    TABLE = "awsh-recordstore-test"

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def table(cls, dynamodb):
        create_table(dynamodb, cls.TABLE, {"PK": "S", "SK": "S"}, "PK", "SK")
        sort_keys = ["Group#7#"]
        sort_keys += [f"Device#{device}#" for device in (1, 2, 12)]
        sort_keys += [f"Journal#{device}#5#" for device in (1, 2, 12)]
        sort_keys += [f"Record#1#5#2026-01-0{day}#" for day in range(1, 6)]
        for sort_key in sort_keys:
            dynamodb.put_item(TableName=cls.TABLE, Item=values({"PK": "7", "SK": sort_key}))
        for device in (1, 2, 12):
            dynamodb.update_item(
                TableName=cls.TABLE,
                Key=values({"PK": "7", "SK": f"LatestRecord#{device}#5#"}),
                UpdateExpression="SET measured = :value",
                ExpressionAttributeValues=values({":value": Decimal("21.5")}),
            )

    def sort_keys(self, dynamodb, condition, plain_values):
        found = query(dynamodb, self.TABLE, f"PK = :gid AND {condition}", {":gid": "7", **plain_values})
        return [item["SK"] for item in found]

    @pytest.mark.parametrize(
        ("prefix", "expected"),
        [
            ("Device#", ["Device#1#", "Device#12#", "Device#2#"]),
            ("Journal#", ["Journal#1#5#", "Journal#12#5#", "Journal#2#5#"]),
            ("LatestRecord#", ["LatestRecord#1#5#", "LatestRecord#12#5#", "LatestRecord#2#5#"]),
            ("LatestRecord#1#", ["LatestRecord#1#5#"]),
            ("Record#2#", []),
        ],
    )
    def test_a_prefix_finds_one_kind_of_entry(self, dynamodb, prefix, expected):
        assert self.sort_keys(dynamodb, "begins_with(SK, :prefix)", {":prefix": prefix}) == expected

    def test_records_of_a_device_in_a_time_range(self, dynamodb):
        edges = {":start": "Record#1#5#2026-01-02", ":end": "Record#1#5#2026-01-04"}
        found = self.sort_keys(dynamodb, "SK BETWEEN :start AND :end", edges)
        assert found == ["Record#1#5#2026-01-02#", "Record#1#5#2026-01-03#"]

    def test_removing_a_device_removes_all_of_its_entries_and_no_others(self, dynamodb):
        prefixes = ["Device#12#", "Journal#12#", "Record#12#", "LatestRecord#12#"]
        doomed = [
            sort_key
            for prefix in prefixes
            for sort_key in self.sort_keys(dynamodb, "begins_with(SK, :prefix)", {":prefix": prefix})
        ]
        assert len(doomed) == 3
        requests = [{"DeleteRequest": {"Key": values({"PK": "7", "SK": sort_key})}} for sort_key in doomed]
        dynamodb.batch_write_item(RequestItems={self.TABLE: requests})
        assert self.sort_keys(dynamodb, "begins_with(SK, :prefix)", {":prefix": "Device#"}) == ["Device#1#", "Device#2#"]
        for sort_key in doomed:
            dynamodb.put_item(TableName=self.TABLE, Item=values({"PK": "7", "SK": sort_key}))
