// Tests of the portable core on the host. Exits with 1 at the first failed check.

#include <cmath>
#include <random>
#include <set>

#include "crc32.h"
#include "delivery.h"
#include "json.h"
#include "memory_storage.h"
#include "queue.h"
#include "retry.h"
#include "wait.h"
#include "window_timer.h"

static void checksum_is_the_common_one() {
    CHECK(crc32(0, reinterpret_cast<const uint8_t *>("123456789"), 9) == 0xCBF43926u);
}

static void readings_come_out_in_order_and_stay_over_a_restart() {
    MemoryStorage storage;
    Queue queue(storage);
    CHECK(queue.open());
    CHECK(push(queue, "a") && push(queue, "b") && push(queue, "c"));
    CHECK(queue.settle({sequence_of(queue, 1)}));
    CHECK((ids_of(queue) == Ids{"a", "c"}));
    Queue again(storage);
    CHECK(again.open());
    CHECK((ids_of(again) == Ids{"a", "c"}));
    CHECK(again.oldest(1, SIZE_MAX).size() == 1);
    CHECK(again.oldest(9, 1).size() == 1);
}

// The log after each step, truncated at every byte: whole records are found, and the queue works.
static void a_log_cut_at_any_byte_keeps_every_whole_record() {
    MemoryStorage storage;
    Queue queue(storage);
    CHECK(queue.open());
    std::vector<std::pair<size_t, Ids>> states = {{0, {}}};
    auto note = [&] { states.push_back({storage.files["/queue.log"].size(), ids_of(queue)}); };
    for (int number = 0; number < 12; ++number) {
        CHECK(push(queue, "reading-" + std::to_string(number)));
        note();
        if (number % 4 == 3) {
            CHECK(queue.settle({sequence_of(queue, 0), sequence_of(queue, 2)}));
            note();
        }
    }
    std::string log = storage.files["/queue.log"];
    CHECK(states.back().first == log.size());
    for (size_t length = 0; length <= log.size(); ++length) {
        Ids expected;
        for (const auto &state : states) {
            if (state.first <= length) {
                expected = state.second;
            }
        }
        MemoryStorage cut;
        cut.files["/queue.log"] = log.substr(0, length);
        Queue survivor(cut);
        CHECK(survivor.open());
        CHECK(ids_of(survivor) == expected);
        CHECK(push(survivor, "new"));
        expected.push_back("new");
        Queue again(cut);
        CHECK(again.open());
        CHECK(ids_of(again) == expected);
    }
}

// A changed byte in flash affects only its own record.
static void a_damaged_byte_costs_one_record() {
    MemoryStorage storage;
    Queue queue(storage);
    CHECK(queue.open());
    for (int number = 0; number < 5; ++number) {
        CHECK(push(queue, "reading-" + std::to_string(number)));
    }
    std::string log = storage.files["/queue.log"];
    for (size_t at = 0; at < log.size(); ++at) {
        MemoryStorage damaged;
        damaged.files["/queue.log"] = log;
        damaged.files["/queue.log"][at] ^= 0x40;
        Queue survivor(damaged);
        CHECK(survivor.open());
        CHECK(ids_of(survivor).size() == 4);
    }
}

// The reading comes back, which costs a request; it must not take an unsent reading with it.
static void a_damaged_settlement_takes_no_other_reading_along() {
    MemoryStorage storage;
    {
        Queue queue(storage);
        CHECK(queue.open() && push(queue, "old"));
        CHECK(queue.settle({sequence_of(queue, 0)}));
    }
    size_t settled_end = storage.files["/queue.log"].size();
    {
        Queue queue(storage);
        CHECK(queue.open() && push(queue, "new"));
    }
    storage.files["/queue.log"][settled_end - 1] ^= 0x40;
    Queue queue(storage);
    CHECK(queue.open());
    CHECK((ids_of(queue) == Ids{"old", "new"}));
    CHECK(queue.settle({sequence_of(queue, 0)}));
    CHECK((ids_of(queue) == Ids{"new"}));
}

// The log record of a reading.
static std::string record_of(uint32_t sequence, const std::string &id) {
    auto little = [](size_t value, int bytes) {
        std::string out;
        for (int at = 0; at < bytes; ++at) {
            out.push_back(static_cast<char>(value >> (8 * at)));
        }
        return out;
    };
    std::string payload = little(sequence, 4) + little(id.size(), 2) + id + "{\"of\":\"" + id + "\"}";
    std::string checked = "\x01" + little(payload.size(), 4) + payload;
    uint32_t crc = crc32(0, reinterpret_cast<const uint8_t *>(checked.data()), checked.size());
    return "\xA7" + checked.substr(0, 5) + little(crc, 4) + payload;
}

static void sequences_that_go_around_stay_apart() {
    MemoryStorage storage;
    storage.files["/queue.log"] = record_of(UINT32_MAX - 1, "a") + record_of(UINT32_MAX, "b");
    Ids expected = {"a", "b"};
    for (const char *id : {"c", "d", "e"}) {
        Queue queue(storage);
        CHECK(queue.open() && push(queue, id));
        expected.push_back(id);
        CHECK(ids_of(queue) == expected);
    }
    Queue queue(storage);
    CHECK(queue.open() && queue.settle({sequence_of(queue, 1)}));
    CHECK((ids_of(queue) == Ids{"a", "c", "d", "e"}));
}

// More than one record can hold.
static void any_number_of_readings_can_be_settled_at_once() {
    MemoryStorage storage;
    QueueLimits limits;
    limits.readings_max = 20000;
    limits.bytes_max = SIZE_MAX;
    std::vector<uint32_t> sequences;
    for (uint32_t sequence = 1; sequence <= 17000; ++sequence) {
        storage.files["/queue.log"] += record_of(sequence, "x");
        sequences.push_back(sequence);
    }
    storage.files["/queue.log"] += record_of(17001, "y");
    // Without compaction, the log consists of these records.
    storage.is_replace_refused = true;
    Queue queue(storage, limits);
    CHECK(queue.open() && queue.length() == 17001);
    CHECK(queue.settle(sequences) && queue.length() == 1);
    Queue again(storage, limits);
    CHECK(again.open() && (ids_of(again) == Ids{"y"}));
}

// Random operations with random power cuts: everything that the queue acknowledged survives the restart.
static void a_power_cut_anywhere_loses_nothing_that_was_kept() {
    std::mt19937 chance(7);
    size_t cuts_in_rewriting = 0;
    for (int life = 0; life < 500; ++life) {
        MemoryStorage storage;
        std::set<std::string> kept;     // pushed with success and not settled
        std::set<std::string> uncertain; // pushed or settled without success
        int number = 0;
        for (int boot = 0; boot < 4; ++boot) {
            storage.power_up();
            Queue queue(storage);
            CHECK(queue.open());
            std::set<std::string> found;
            for (const std::string &id : ids_of(queue)) {
                CHECK(found.insert(id).second);
                CHECK(kept.count(id) + uncertain.count(id) > 0);
            }
            for (const std::string &id : kept) {
                CHECK(found.count(id) == 1 || uncertain.count(id) == 1);
            }
            kept = found;
            uncertain.clear();
            if (chance() % 2 == 0) {
                storage.bytes_left = chance() % 12000;
            } else {
                storage.steps_left = chance() % 120;
            }
            while (!storage.is_off && number < (boot + 1) * 150) {
                if (chance() % 3 != 0 || queue.length() < 3) {
                    std::string id = std::to_string(number++) + std::string(chance() % 60, 'x');
                    (push(queue, id) ? kept : uncertain).insert(id);
                } else {
                    std::vector<QueuedReading> some = queue.oldest(1 + chance() % 8, SIZE_MAX);
                    std::vector<uint32_t> sequences;
                    for (const QueuedReading &reading : some) {
                        sequences.push_back(reading.sequence);
                    }
                    bool is_settled = !storage.is_off && queue.settle(sequences);
                    for (const QueuedReading &reading : some) {
                        kept.erase(reading.batch_id);
                        if (!is_settled) {
                            uncertain.insert(reading.batch_id);
                        }
                    }
                }
            }
            cuts_in_rewriting += storage.files.count("/queue.new");
        }
    }
    CHECK(cuts_in_rewriting > 10);
}

static void a_full_queue_drops_the_oldest_and_counts_them() {
    MemoryStorage storage;
    QueueLimits limits;
    limits.readings_max = 3;
    Queue queue(storage, limits);
    CHECK(queue.open());
    for (const char *id : {"a", "b", "c", "d", "e"}) {
        CHECK(push(queue, id));
    }
    CHECK((ids_of(queue) == Ids{"c", "d", "e"}));
    CHECK(queue.dropped() == 2);

    MemoryStorage small;
    limits.readings_max = 100000;
    limits.bytes_max = 2000;
    Queue bounded(small, limits);
    CHECK(bounded.open());
    size_t largest = 0;
    for (int number = 0; number < 5000; ++number) {
        CHECK(push(bounded, std::to_string(number)));
        largest = std::max(largest, small.files["/queue.log"].size());
    }
    CHECK(ids_of(bounded).back() == "4999");
    CHECK(bounded.length() > 20);
    CHECK(largest < 10000);
    CHECK(!bounded.push("too-large", std::string(3000, 'x')));
}

static void what_is_wrong_is_not_sent_and_the_rest_is() {
    Identity identity{"AA:BB:CC:DD:EE:FF", "7c9e6679-7425-40de-944b-e07fc1f90ae7", "1.0\"\\\n"};
    std::string json = reading_json(identity, {1, 2}, {{"a", 22.5}, {"b", NAN}, {"c", -0.25}}, {{"x", true}, {"y", false}});
    CHECK(json == "{\"batch_id\":\"AA:BB:CC:DD:EE:FF_7c9e6679-7425-40de-944b-e07fc1f90ae7_1_2\","
                  "\"hardware_id\":\"AA:BB:CC:DD:EE:FF\",\"boot_id\":\"7c9e6679-7425-40de-944b-e07fc1f90ae7\","
                  "\"firmware_version\":\"1.0\\\"\\\\\\u000a\",\"timestamp_ms\":2,\"sensors\":{\"a\":22.5,\"c\":-0.25},"
                  "\"sensor_status\":{\"x\":\"ok\",\"y\":\"error\"}}");
}

static void an_answer_is_believed_only_when_it_is_whole() {
    std::string text = " {\"new\":[{\"a\":[1.5e3,true,null]}], \"acknowledged_batch_ids\" : [\"a\\u0041\"],"
                       "\"duplicate_batch_ids\":[\"b\"],\"results\":[{\"batch_id\":\"a\",\"status\":\"stored\"},"
                       "{\"batch_id\":null,\"status\":\"rejected\",\"code\":\"X\"},"
                       "{\"batch_id\":\"c\",\"status\":\"rejected\",\"code\":\"INVALID\",\"reason\":\"\\\"no\\\"\"}]} ";
    Answer answer;
    CHECK(parse_answer(text, answer));
    CHECK((answer.delivered == Ids{"aA", "b"}));
    CHECK(answer.rejected.size() == 1 && answer.rejected[0].batch_id == "c" && answer.rejected[0].code == "INVALID");
    for (size_t length = 0; length < text.size() - 1; ++length) {
        CHECK(!parse_answer(text.substr(0, length), answer));
        CHECK(answer.delivered.empty());
    }
    std::string deep = "{\"acknowledged_batch_ids\":[],\"duplicate_batch_ids\":[],\"x\":" + std::string(100000, '[');
    for (const std::string &bad : {std::string("<html>"), std::string("{}"), std::string("[]"), text + "x", deep,
                                   std::string("{\"acknowledged_batch_ids\":[\"\\u0x41\"],\"duplicate_batch_ids\":[]}"),
                                   std::string("{\"acknowledged_batch_ids\":{},\"duplicate_batch_ids\":[]}"),
                                   std::string("{\"acknowledged_batch_ids\":[],\"duplicate_batch_ids\":null}"),
                                   std::string("{\"acknowledged_batch_ids\":[1],\"duplicate_batch_ids\":[]}")}) {
        CHECK(!parse_answer(bad, answer));
    }
    std::mt19937 chance(3);
    for (int round = 0; round < 20000; ++round) {
        std::string noise = text;
        for (int change = 0; change < 3; ++change) {
            noise[chance() % noise.size()] = static_cast<char>(chance());
        }
        parse_answer(noise, answer); // must end within the text
    }
}

static void either_list_and_a_rejection_settle_and_silence_does_not() {
    MemoryStorage storage;
    Queue queue(storage);
    CHECK(queue.open());
    for (const char *id : {"a", "b", "c", "d"}) {
        CHECK(push(queue, id));
    }
    Ids dead;
    auto dead_letter = [&](const QueuedReading &reading, const std::string &code) {
        dead.push_back(reading.batch_id + code);
        return true;
    };
    Response given;
    Response got;
    auto post = [&](const std::string &) { return given; };
    for (int status : {0, -11, 408, 425, 429, 500, 502, 503, 504, 599}) {
        given.status = status;
        CHECK(deliver(queue, 10, SIZE_MAX, post, dead_letter, got) == Outcome::Again);
    }
    for (int status : {301, 400, 401, 403, 404, 413}) {
        given.status = status;
        CHECK(deliver(queue, 10, SIZE_MAX, post, dead_letter, got) == Outcome::Refused);
    }
    given.status = 200;
    given.body = "{\"acknowledged_batch_ids\":[\"a\"";
    CHECK(deliver(queue, 10, SIZE_MAX, post, dead_letter, got) == Outcome::Again);
    CHECK(queue.length() == 4);
    given.body = "{\"acknowledged_batch_ids\":[\"a\",\"zzz\"],\"duplicate_batch_ids\":[\"c\"],"
                 "\"results\":[{\"batch_id\":\"d\",\"status\":\"rejected\",\"code\":\"X\"}]}";
    CHECK(deliver(queue, 10, SIZE_MAX, post, dead_letter, got) == Outcome::Delivered);
    CHECK((ids_of(queue) == Ids{"b"}));
    CHECK((dead == Ids{"dX"}));
    CHECK(deliver(queue, 10, SIZE_MAX, post, dead_letter, got) == Outcome::Again);
}

static void a_rejection_that_is_not_about_the_reading_leaves_it_in_the_queue() {
    MemoryStorage storage;
    Queue queue(storage);
    CHECK(queue.open() && queue.push("a", "{}") && queue.push("b", "{}"));
    Ids dead;
    auto dead_letter = [&](const QueuedReading &reading, const std::string &) {
        dead.push_back(reading.batch_id);
        return true;
    };
    Response got;
    auto post = [](const std::string &) {
        Response given;
        given.status = 200;
        given.body = "{\"acknowledged_batch_ids\":[],\"duplicate_batch_ids\":[],\"results\":["
                     "{\"batch_id\":\"a\",\"status\":\"rejected\",\"code\":\"OUT_OF_SCOPE\"},"
                     "{\"batch_id\":\"b\",\"status\":\"rejected\",\"code\":\"UNKNOWN\"}]}";
        return given;
    };
    CHECK(deliver(queue, 10, SIZE_MAX, post, dead_letter, got) == Outcome::Again);
    CHECK(queue.length() == 2 && dead.empty());
}

static void waits_grow_to_a_limit_and_begin_anew_after_a_success() {
    std::mt19937 numbers(1);
    auto chance = [&] { return static_cast<uint32_t>(numbers()); };
    RetryPolicy policy;
    uint32_t first = policy.failed_ms(chance(), 0);
    CHECK(first >= 500 && first <= 1000);
    uint32_t last = 0;
    for (int round = 0; round < 100; ++round) {
        last = policy.failed_ms(chance(), 0);
        CHECK(last <= 300000);
    }
    CHECK(last >= 150000);
    policy.succeeded();
    CHECK(policy.failed_ms(chance(), 0) <= 1000);
    policy.succeeded();
    uint32_t asked = policy.failed_ms(chance(), 7);
    CHECK(asked >= 7500 && asked <= 8000);
    CHECK(policy.failed_ms(chance(), UINT32_MAX) <= 303000);
}

// After minutes, weeks and 49 days, and across the overflow of the clock.
static void a_wait_that_is_long_over_is_over() {
    CHECK(Wait().is_over(0) && Wait().is_over(UINT32_MAX));
    for (uint32_t begun_ms : {0u, 1000u, 0x7FFFFFFFu, 0x80000000u, UINT32_MAX - 10}) {
        Wait wait;
        wait.begin(begun_ms, 300000);
        CHECK(!wait.is_over(begun_ms) && !wait.is_over(begun_ms + 299999));
        for (uint32_t later_ms : {300000u, 0x7FFFFFFFu, 0x80000000u + 300000, 0xC0000000u, UINT32_MAX}) {
            CHECK(wait.is_over(begun_ms + later_ms));
        }
    }
}

static void a_window_that_flash_does_not_take_is_offered_once_a_minute() {
    WindowTimer timer(300000);
    Window window{0, 0};
    CHECK(timer.poll(5000, 0, window) == WindowEvent::None);
    int64_t set_ms = CLOCK_SET_AFTER_MS + 1;
    uint32_t uptime_ms = UINT32_MAX - 400000;
    CHECK(timer.poll(set_ms, uptime_ms, window) == WindowEvent::Begun);
    int attempts = 0;
    for (uint32_t passed_ms = 0; passed_ms < 600000; passed_ms += 10) {
        if (timer.poll(set_ms + passed_ms, uptime_ms + passed_ms, window) == WindowEvent::Ended) {
            CHECK(window.start_ms == set_ms && window.end_ms == set_ms + passed_ms);
            timer.failed(uptime_ms + passed_ms);
            attempts += 1;
        }
    }
    CHECK(attempts == 5);
    CHECK(timer.poll(set_ms + 600000, uptime_ms + 600000, window) == WindowEvent::Ended);
    timer.kept(window);
    CHECK(timer.poll(set_ms + 600010, uptime_ms + 600010, window) == WindowEvent::None);
    CHECK(timer.poll(set_ms + 900000, uptime_ms + 900000, window) == WindowEvent::Ended);
    CHECK(window.start_ms == set_ms + 600000);
    CHECK(timer.poll(set_ms, uptime_ms + 900000, window) == WindowEvent::Begun);
}

int main() {
    checksum_is_the_common_one();
    readings_come_out_in_order_and_stay_over_a_restart();
    a_log_cut_at_any_byte_keeps_every_whole_record();
    a_damaged_byte_costs_one_record();
    a_damaged_settlement_takes_no_other_reading_along();
    sequences_that_go_around_stay_apart();
    any_number_of_readings_can_be_settled_at_once();
    a_power_cut_anywhere_loses_nothing_that_was_kept();
    a_full_queue_drops_the_oldest_and_counts_them();
    what_is_wrong_is_not_sent_and_the_rest_is();
    an_answer_is_believed_only_when_it_is_whole();
    either_list_and_a_rejection_settle_and_silence_does_not();
    a_rejection_that_is_not_about_the_reading_leaves_it_in_the_queue();
    waits_grow_to_a_limit_and_begin_anew_after_a_success();
    a_wait_that_is_long_over_is_over();
    a_window_that_flash_does_not_take_is_offered_once_a_minute();
    puts("all checks passed");
    return 0;
}
