// SPDX-License-Identifier: Apache-2.0
#include "core/exports/event_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

#include "core/base/error.h"
#include "core/system/file.h"
#include "core/system/machine_limits.h"
#include "core/system/plain_file.h"

namespace pipewright {
namespace {

namespace fs = std::filesystem;

constexpr int kMostWaiting = 100;  // records

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

EventLog::EventLog(fs::path file)
    : file_(std::move(file)), descriptor_(file_, O_WRONLY | O_APPEND | O_NOFOLLOW) {
  if (!descriptor_.is_open()) refuse_file(file_, "cannot open", errno);
}

EventLog EventLog::begin(const fs::path& file) {
  write_file(file, version_record(now()));
  return EventLog(file);
}

EventLog EventLog::go_on(const fs::path& file,
                         const std::function<bool(const EventPlace&)>& keeps) {
  require_plain_file(file);
  std::error_code none;
  if (!fs::exists(file, none)) return begin(file);
  const std::size_t kept = kept_bytes(
      read_file(file), [&](const EventPlace& place) { return place.tag.empty() || keeps(place); });
  if (kept == 0) return begin(file);
  EventLog log(file);
  if (::ftruncate(log.descriptor_.number(), static_cast<off_t>(kept)) != 0)
    refuse_file(file, "cannot truncate", errno);
  return log;
}

void EventLog::add(std::int64_t step, std::span<const TaggedValue> values) {
  waiting_ += event_record(now(), step, values);
  if (++records_waiting_ >= kMostWaiting) flush();
}

void EventLog::flush() {
  write_all(descriptor_.number(), waiting_, file_);
  waiting_.clear();
  records_waiting_ = 0;
}

void EventLog::sync() {
  flush();
  if (::fsync(descriptor_.number()) != 0) refuse_file(file_, "cannot sync", errno);
}

}  // namespace pipewright
