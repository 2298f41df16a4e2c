// A queue of readings in flash: an append-only log with a checksum on every record.
//
// A record is MAGIC, type, length (4 bytes), CRC-32 of type, length and payload (4 bytes), payload; numbers are little-endian.
//   type 1, a reading:  sequence (4), length of the id (2), id, JSON body
//   type 2, settled:    sequences (4 each) of readings that are done
// Bytes that are not a whole record with a valid checksum are skipped one by one, so that a partial or damaged record does not affect
// its neighbours. A failed read is not damage: it ends the call, and nothing is dropped.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "storage.h"

namespace homeport {

struct QueueLimits {
    // The most readings; each uses 16 bytes of memory.
    size_t readings_max = 2000;
    // The most bytes of readings. Flash needs two and a half times as much, for the log and its compaction.
    size_t bytes_max = 256 * 1024;
};

struct QueuedReading {
    uint32_t sequence;
    std::string batch_id;
    std::string body;
};

class Queue {
public:
    Queue(Storage &storage, QueueLimits limits = QueueLimits());

    // Reads the log. Returns false if flash cannot be read: the log is unchanged, and the queue accepts and returns nothing until
    // another call succeeds.
    bool open();

    // Adds a reading; it is in flash when this returns true. Beyond the limits, the oldest readings are dropped and counted by
    // `dropped`. If flash is full, nothing is added or dropped.
    bool push(const std::string &batch_id, const std::string &body);

    // Up to `count` readings with up to `bytes_max` bytes of bodies (at least one), oldest first. Fewer or none if flash cannot be
    // read.
    std::vector<QueuedReading> oldest(size_t count, size_t bytes_max);

    // Removes readings, in any order. Returns false if flash cannot be written; they may then come back after a restart.
    bool settle(const std::vector<uint32_t> &sequences);

    // Moves readings behind the others in `oldest`, until a restart.
    void postpone(const std::vector<uint32_t> &sequences);

    size_t length() const { return entries_.size(); }
    // The number of readings dropped to make room since `open`.
    size_t dropped() const { return dropped_; }

private:
    struct Entry {
        uint32_t sequence;
        uint32_t offset; // of the record
        uint32_t length; // of the whole record
        bool is_postponed;
    };

    enum class Loaded { Whole, Damaged, Unread };

    bool scan(bool &is_clean);
    bool is_ready();
    bool gather(bool is_postponed, size_t count, size_t bytes_max, std::vector<QueuedReading> &readings,
                std::vector<uint32_t> &damaged);
    bool append_record(uint8_t type, const std::string &payload);
    void drop_excess();
    size_t waste() const;
    bool compact();
    void compact_if_worthwhile();
    bool copy_live(std::deque<Entry> &moved, size_t &bytes);
    static void remove_sequences(std::deque<Entry> &entries, const std::vector<uint32_t> &sequences);
    void count_live_bytes();
    Loaded load(const Entry &entry, QueuedReading &reading);

    Storage &storage_;
    QueueLimits limits_;
    std::deque<Entry> entries_;
    bool is_open_ = false;
    // After a failed call, the content and the length of the log are unknown.
    bool is_uncertain_ = false;
    uint32_t next_sequence_ = 1;
    size_t log_bytes_ = 0;
    size_t live_bytes_ = 0;
    // Less waste than this never triggers compaction.
    size_t compact_from_waste_ = 0;
    size_t dropped_ = 0;
};

} // namespace homeport
