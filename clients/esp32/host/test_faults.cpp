// Tests of the core on flash that fails, fills up or is damaged. Exits with 1 at the first failed check.

#include <random>
#include <set>
#include <sys/resource.h>

#include "dead_letters.h"
#include "delivery.h"
#include "memory_storage.h"
#include "posix_storage.h"
#include "volume.h"

static const char *const LOG = "/queue.log";

static void fill(Queue &queue, int count) {
    CHECK(queue.open());
    for (int number = 0; number < count; ++number) {
        CHECK(push(queue, "reading-" + std::to_string(number)));
    }
}

static Ids first_ids(int count) {
    Ids ids;
    for (int number = 0; number < count; ++number) {
        ids.push_back("reading-" + std::to_string(number));
    }
    return ids;
}

static void a_failed_read_settles_nothing() {
    MemoryStorage storage;
    Queue queue(storage);
    fill(queue, 5);
    std::string log = storage.files[LOG];
    // A reading takes two reads: header and payload.
    for (size_t reads = 0; reads < 10; ++reads) {
        storage.reads_left = reads;
        CHECK(queue.oldest(5, SIZE_MAX).size() == reads / 2);
        CHECK(queue.length() == 5 && queue.dropped() == 0);
    }
    CHECK(storage.files[LOG] == log);
    storage.reads_left = SIZE_MAX;
    CHECK(ids_of(queue) == first_ids(5));
}

static void readings_that_cannot_be_read_are_no_empty_queue() {
    MemoryStorage storage;
    Queue queue(storage);
    fill(queue, 1);
    storage.reads_left = 0;
    Response response;
    auto post = [](const std::string &) { return Response(); };
    auto dead_letter = [](const QueuedReading &, const std::string &) { return true; };
    CHECK(deliver(queue, 1, SIZE_MAX, post, dead_letter, response) == Outcome::Again);
}

static void a_log_whose_length_is_unknown_is_not_taken_for_empty() {
    MemoryStorage storage;
    {
        Queue queue(storage);
        fill(queue, 5);
    }
    std::string log = storage.files[LOG];
    Queue queue(storage);
    storage.is_size_unknown = true;
    CHECK(!queue.open());
    storage.is_size_unknown = false;
    CHECK(!push(queue, "new") && !queue.settle({1}) && queue.oldest(9, SIZE_MAX).empty());
    CHECK(storage.files[LOG] == log);
    CHECK(queue.open() && ids_of(queue) == first_ids(5));
}

static void a_read_that_fails_while_the_log_is_opened_drops_nothing() {
    MemoryStorage storage;
    {
        Queue queue(storage);
        fill(queue, 5);
    }
    std::string log = storage.files[LOG];
    for (size_t reads = 0; reads < 10; ++reads) {
        Queue queue(storage);
        storage.reads_left = reads;
        CHECK(!queue.open());
        storage.reads_left = SIZE_MAX;
        CHECK(storage.files[LOG] == log);
        CHECK(queue.open() && ids_of(queue) == first_ids(5));
    }
}

// Readings after such a write are found, although the queue does not know how much of it is in the log.
static void a_write_that_fails_and_leaves_its_length_unknown_misplaces_nothing() {
    MemoryStorage storage;
    Queue queue(storage);
    fill(queue, 3);
    storage.is_size_unknown = true;
    storage.torn_appends = 1;
    CHECK(!push(queue, "torn"));
    CHECK(!push(queue, "unknown"));
    storage.is_size_unknown = false;
    CHECK(push(queue, "reading-3"));
    CHECK(ids_of(queue) == first_ids(4));
    Queue again(storage);
    CHECK(again.open() && ids_of(again) == first_ids(4));
}

// A rename that succeeds but reports a failure, as when its directory cannot be synced.
static void a_rewriting_of_unknown_outcome_loses_nothing() {
    MemoryStorage storage;
    QueueLimits limits;
    limits.readings_max = 50;
    Queue queue(storage, limits);
    CHECK(queue.open());
    storage.is_replace_doubtful = true;
    for (int number = 0; number < 1000; ++number) {
        push(queue, "reading-" + std::to_string(number));
        CHECK(ids_of(queue).size() == std::min<size_t>(static_cast<size_t>(number) + 1, 50));
    }
    CHECK(ids_of(queue).back() == "reading-999");
    CHECK(storage.replacements > 3);
}

static void a_queue_on_full_flash_goes_on_when_its_readings_are_delivered(bool is_torn) {
    MemoryStorage storage;
    storage.is_full_append_torn = is_torn;
    Queue queue(storage);
    fill(queue, 100);
    storage.capacity = storage.used() + 10;
    CHECK(!push(queue, "too-much"));
    CHECK(queue.length() == 100 && queue.dropped() == 0);
    size_t room_at = SIZE_MAX;
    while (queue.length() > 0) {
        bool is_settled = queue.settle({sequence_of(queue, 0), sequence_of(queue, 1)});
        room_at = is_settled && room_at == SIZE_MAX ? queue.length() : room_at;
        CHECK(storage.files.count("/queue.new") == 0);
    }
    CHECK(room_at != SIZE_MAX && storage.files.count(LOG) == 0);
    CHECK(push(queue, "new"));
    Queue again(storage);
    CHECK(again.open() && (ids_of(again) == Ids{"new"}));
}

static void a_settlement_that_cannot_be_appended_holds_by_rewriting_the_log() {
    MemoryStorage storage;
    Queue queue(storage);
    fill(queue, 5);
    storage.torn_appends = 1;
    CHECK(queue.settle({sequence_of(queue, 1), sequence_of(queue, 3)}));
    Queue again(storage);
    CHECK(again.open() && (ids_of(again) == Ids{"reading-0", "reading-2", "reading-4"}));
}

static void a_reading_finds_room_where_the_log_has_waste() {
    MemoryStorage storage;
    Queue queue(storage);
    fill(queue, 20);
    for (int number = 0; number < 18; ++number) {
        CHECK(queue.settle({sequence_of(queue, 0)}));
    }
    storage.capacity = storage.used() + 120;
    storage.is_full_append_torn = false;
    CHECK(queue.push("large", std::string(150, 'x')));
    CHECK(queue.length() == 3);
    Queue again(storage);
    CHECK(again.open() && again.length() == 3);
}

static void a_torn_log_on_full_flash_is_served_as_it_is() {
    MemoryStorage storage;
    {
        Queue queue(storage);
        fill(queue, 20);
    }
    storage.files[LOG].append("\xA7\x01torn");
    storage.capacity = storage.used();
    Queue queue(storage);
    CHECK(queue.open());
    CHECK(ids_of(queue) == first_ids(20));
    CHECK(storage.files.count("/queue.new") == 0);
    for (const QueuedReading &reading : queue.oldest(20, SIZE_MAX)) {
        queue.settle({reading.sequence});
    }
    CHECK(push(queue, "new") && (ids_of(queue) == Ids{"new"}));
}

static void a_rewriting_that_fails_leaves_its_room_to_readings(bool is_torn) {
    MemoryStorage storage;
    storage.is_full_append_torn = is_torn;
    Queue queue(storage);
    fill(queue, 100);
    storage.capacity = storage.used() + 100;
    storage.torn_appends = 1;
    CHECK(!queue.settle({sequence_of(queue, 0)}));
    CHECK(push(queue, "new"));
}

// Failed compaction is not retried at once, because that would wear out the flash.
static void a_rewriting_that_fails_waits_for_more_waste() {
    MemoryStorage storage;
    Queue queue(storage);
    fill(queue, 400);
    std::vector<QueuedReading> readings = queue.oldest(400, SIZE_MAX);
    storage.capacity = storage.used() + 8000;
    size_t attempts = 0;
    for (size_t at = 0; at < 250; ++at) {
        size_t before = storage.bytes_written;
        CHECK(queue.settle({readings[at].sequence}));
        attempts += storage.bytes_written - before > 1000 ? 1 : 0;
    }
    CHECK(attempts > 0 && attempts < 5);
}

static void a_reading_that_flash_does_not_take_drops_no_other(bool is_torn) {
    MemoryStorage storage;
    storage.is_full_append_torn = is_torn;
    QueueLimits limits;
    limits.readings_max = 5;
    Queue queue(storage, limits);
    fill(queue, 5);
    storage.capacity = storage.used() + 20;
    CHECK(!push(queue, "new"));
    CHECK(ids_of(queue) == first_ids(5) && queue.dropped() == 0);
}

static Response rejecting(const Ids &ids) {
    Response response;
    response.status = 200;
    response.body = "{\"acknowledged_batch_ids\":[],\"duplicate_batch_ids\":[],\"results\":[";
    for (const std::string &id : ids) {
        response.body += (id == ids.front() ? "" : ",") + ("{\"batch_id\":\"" + id) + "\",\"status\":\"rejected\",\"code\":\"X\"}";
    }
    response.body += "]}";
    return response;
}

static void a_rejected_reading_that_cannot_be_kept_elsewhere_stays() {
    MemoryStorage storage;
    Queue queue(storage);
    fill(queue, 3);
    DeadLetters dead_letters(storage);
    auto keep = [&](const QueuedReading &reading, const std::string &code) { return dead_letters.keep(reading, code); };
    auto post = [](const std::string &) { return rejecting({"reading-0", "reading-1"}); };
    Response got;
    storage.capacity = storage.used();
    CHECK(deliver(queue, 2, SIZE_MAX, post, keep, got) == Outcome::Again);
    CHECK(queue.length() == 3);
    // The next reading is not blocked.
    CHECK(queue.oldest(1, SIZE_MAX)[0].batch_id == "reading-2");
    CHECK((ids_of(queue) == Ids{"reading-2", "reading-0", "reading-1"}));
    storage.capacity = SIZE_MAX;
    CHECK(deliver(queue, 3, SIZE_MAX, post, keep, got) == Outcome::Delivered);
    CHECK((ids_of(queue) == Ids{"reading-2"}));
    CHECK(storage.files["/rejected.log"] == "\nX {\"of\":\"reading-0\"}\nX {\"of\":\"reading-1\"}");
}

static void readings_that_the_answer_leaves_out_do_not_hold_up_the_others() {
    MemoryStorage storage;
    Queue queue(storage);
    fill(queue, 4);
    auto post = [](const std::string &) { return rejecting({"reading-3"}); };
    auto dead_letter = [](const QueuedReading &, const std::string &) { return true; };
    Response got;
    CHECK(deliver(queue, 2, SIZE_MAX, post, dead_letter, got) == Outcome::Again);
    CHECK(deliver(queue, 2, SIZE_MAX, post, dead_letter, got) == Outcome::Delivered);
    CHECK(ids_of(queue) == first_ids(3));
    // If there is no room, the oldest is dropped first, postponed or not.
    QueueLimits limits;
    limits.readings_max = 2;
    Queue small(storage, limits);
    CHECK(small.open());
    small.postpone({sequence_of(small, 0), sequence_of(small, 1)});
    CHECK(push(small, "new") && (ids_of(small) == Ids{"reading-2", "new"}));
}

static void dead_letters_are_bounded_and_make_room_for_newer_ones() {
    MemoryStorage storage;
    DeadLetters dead_letters(storage);
    QueuedReading reading{1, "id", std::string(200, 'x')};
    for (int number = 0; number < 2000; ++number) {
        CHECK(dead_letters.keep(reading, std::to_string(number)));
        CHECK(storage.used() <= 2 * (DeadLetters::FILE_BYTES_MAX + 300));
    }
    CHECK(storage.files.count("/rejected.old") == 1);
    storage.capacity = storage.used();
    CHECK(dead_letters.keep(reading, "last"));
    CHECK(storage.files.count("/rejected.old") == 0);
    CHECK(storage.files["/rejected.log"].find("\nlast " + reading.body) != std::string::npos);
    storage.is_size_unknown = true;
    CHECK(!dead_letters.keep(reading, "none"));
}

// A board on which any step may fail, or be the last one before a power cut.
class Board : public Volume {
public:
    bool is_erased = true;
    bool has_files = false;
    bool is_damaged = false;
    bool is_marked = false;
    size_t steps_left = SIZE_MAX;

    bool mount() override { return has_files && !is_damaged; }
    bool is_blank() override { return is_erased; }
    bool format() override {
        // Interrupted formatting leaves flash that is neither blank nor a file system.
        is_erased = false;
        has_files = false;
        has_files = step();
        is_damaged = false;
        return has_files;
    }
    bool has_mark() override { return is_marked; }
    bool set_mark() override { return step() && (is_marked = true); }
    bool clear_mark() override {
        is_marked = is_marked && !step();
        return !is_marked;
    }

private:
    bool step() {
        bool is_done = steps_left > 0;
        steps_left -= is_done && steps_left != SIZE_MAX ? 1 : 0;
        return is_done;
    }
};

static void only_flash_that_never_held_a_reading_is_formatted() {
    for (size_t steps = 0; steps < 4; ++steps) {
        Board board;
        board.steps_left = steps;
        CHECK(mount_or_format(board) == (steps == 3));
        board.steps_left = SIZE_MAX;
        CHECK(mount_or_format(board) && board.has_files && !board.is_marked);
        // The flash now holds readings, and the file system is damaged.
        board.is_damaged = true;
        CHECK(!mount_or_format(board) && board.has_files && board.is_damaged);
        board.is_damaged = false;
        CHECK(mount_or_format(board));
    }
    Board used;
    used.is_erased = false;
    CHECK(!mount_or_format(used) && !used.has_files);
}

// Temporary faults of all kinds, with restarts in between: readings that were stored and not settled are there afterwards.
static void faults_that_pass_lose_nothing() {
    std::mt19937 chance(11);
    for (int life = 0; life < 200; ++life) {
        MemoryStorage storage;
        std::set<std::string> kept;
        int number = 0;
        for (int boot = 0; boot < 4; ++boot) {
            Queue queue(storage);
            CHECK(queue.open());
            for (int step = 0; step < 150; ++step) {
                storage.reads_left = chance() % 6 == 0 ? chance() % 40 : SIZE_MAX;
                storage.is_size_unknown = chance() % 8 == 0;
                storage.torn_appends = chance() % 8 == 0 ? 1 : 0;
                storage.capacity = chance() % 8 == 0 ? storage.used() + chance() % 400 : SIZE_MAX;
                storage.is_full_append_torn = chance() % 2 == 0;
                storage.is_replace_refused = chance() % 4 == 0;
                storage.is_replace_doubtful = chance() % 4 == 0;
                if (chance() % 3 != 0) {
                    std::string id = std::to_string(number++) + std::string(chance() % 200, 'x');
                    if (push(queue, id)) {
                        kept.insert(id);
                    }
                    continue;
                }
                std::vector<uint32_t> sequences;
                for (const QueuedReading &reading : queue.oldest(chance() % 12, SIZE_MAX)) {
                    sequences.push_back(reading.sequence);
                    kept.erase(reading.batch_id);
                }
                queue.settle(sequences);
            }
            storage.reads_left = storage.capacity = SIZE_MAX;
            storage.torn_appends = 0;
            storage.is_size_unknown = storage.is_replace_refused = storage.is_replace_doubtful = false;
            Ids ids = ids_of(queue);
            CHECK(std::set<std::string>(ids.begin(), ids.end()) == kept && ids.size() == kept.size());
            CHECK(queue.dropped() == 0);
            // Readings that could not be settled may come back after the restart; they are settled again.
            Queue again(storage);
            CHECK(again.open());
            std::vector<uint32_t> returned;
            std::set<std::string> found;
            for (const QueuedReading &reading : again.oldest(SIZE_MAX, SIZE_MAX)) {
                found.insert(reading.batch_id);
                if (kept.count(reading.batch_id) == 0) {
                    returned.push_back(reading.sequence);
                }
            }
            CHECK(std::includes(found.begin(), found.end(), kept.begin(), kept.end()));
            CHECK(again.settle(returned) && again.length() == kept.size());
        }
    }
}

// Without free descriptors no file can be opened, as on a device without free memory.
static void a_file_that_cannot_be_opened_is_not_empty(const char *directory) {
    PosixStorage storage(directory);
    size_t bytes = 1;
    CHECK(storage.size(LOG, bytes) && bytes == 0);
    {
        Queue queue(storage);
        fill(queue, 3);
    }
    Queue queue(storage);
    CHECK(queue.open());
    rlimit before;
    CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0);
    rlimit none = {0, before.rlim_max};
    CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
    CHECK(storage.size(LOG, bytes) && bytes > 0);
    CHECK(queue.oldest(9, SIZE_MAX).empty() && queue.length() == 3 && !push(queue, "new"));
    CHECK(!Queue(storage).open());
    CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
    CHECK(ids_of(queue) == first_ids(3));
    Queue again(storage);
    CHECK(again.open() && ids_of(again) == first_ids(3));
    // A file in place of a directory in the path is not a missing file.
    PosixStorage wrong(directory + std::string(LOG));
    CHECK(!wrong.size(LOG, bytes));
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: test_faults DIRECTORY (must be empty)\n");
        return 2;
    }
    a_failed_read_settles_nothing();
    readings_that_cannot_be_read_are_no_empty_queue();
    a_log_whose_length_is_unknown_is_not_taken_for_empty();
    a_read_that_fails_while_the_log_is_opened_drops_nothing();
    a_write_that_fails_and_leaves_its_length_unknown_misplaces_nothing();
    a_rewriting_of_unknown_outcome_loses_nothing();
    for (bool is_torn : {true, false}) {
        a_queue_on_full_flash_goes_on_when_its_readings_are_delivered(is_torn);
        a_rewriting_that_fails_leaves_its_room_to_readings(is_torn);
        a_reading_that_flash_does_not_take_drops_no_other(is_torn);
    }
    a_settlement_that_cannot_be_appended_holds_by_rewriting_the_log();
    a_reading_finds_room_where_the_log_has_waste();
    a_torn_log_on_full_flash_is_served_as_it_is();
    a_rewriting_that_fails_waits_for_more_waste();
    a_rejected_reading_that_cannot_be_kept_elsewhere_stays();
    readings_that_the_answer_leaves_out_do_not_hold_up_the_others();
    dead_letters_are_bounded_and_make_room_for_newer_ones();
    only_flash_that_never_held_a_reading_is_formatted();
    faults_that_pass_lose_nothing();
    a_file_that_cannot_be_opened_is_not_empty(argv[1]);
    puts("all checks passed");
    return 0;
}
