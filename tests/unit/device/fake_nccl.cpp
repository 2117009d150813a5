// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/device/fake_nccl.h"

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "core/tensors/torch.h"
#include "tests/unit/device/fake_device.h"
#include "tests/unit/device/stream_model.h"

namespace pipewright::test {
namespace {

constexpr int kPulled = 2, kOtherSize = 4, kMakesNoSense = 5;
constexpr int kEvery = -1, kNoMore = 0;  // of sends left

struct Message {
  std::string bytes;
  StreamModel::Clock sent;
};

/// What the members of a communicator share.
struct Meeting {
  int size = 0, joined = 0;
  std::set<int> devices;
  std::map<std::pair<int, int>, std::deque<Message>> lines;  ///< from, to
};

struct Member {
  std::shared_ptr<Meeting> meeting;
  int rank = 0;
};

/// A call within a group, done at the group's end.
struct NcclCall {
  const void* from = nullptr;
  void* to = nullptr;
  std::size_t bytes = 0;
  int peer = 0;
  Member* member = nullptr;
  StreamModel::Stream stream;
};

std::mutex mutex;
std::condition_variable changed;
std::map<std::string, std::shared_ptr<Meeting>> meetings;
std::atomic<int> ids = 0, messages = 0, sends_left = kEvery;
std::atomic<bool> background = false, told = false;
thread_local std::vector<NcclCall> group;
thread_local int depth = 0;

std::string name_of(const NcclId& id) {
  return {id.bytes.data(), id.bytes.size()};
}

int get_unique_id(NcclId* id) {
  const int number = ++ids;
  std::memcpy(id->bytes.data(), &number, sizeof number);
  return 0;
}

int comm_init_rank(NcclCommunicator* communicator, int size, NcclId id, int rank) {
  std::unique_lock lock(mutex);
  std::shared_ptr<Meeting>& known = meetings[name_of(id)];
  if (!known) known = std::make_shared<Meeting>();
  const std::shared_ptr<Meeting> meeting = known;
  meeting->size = size;
  ++meeting->joined;
  const int device = c10::impl::VirtualGuardImpl(at::kPrivateUse1).getDevice().index();
  if (!meeting->devices.insert(device).second) return kMakesNoSense;  // the others wait for ever
  changed.notify_all();
  changed.wait(lock, [&] { return meeting->joined == size; });
  *communicator = new Member{meeting, rank};
  return 0;
}

int comm_get_async_error(NcclCommunicator, int* error) {
  *error = background ? kPulled : 0;
  if (*error != 0) {
    told = true;
    told.notify_all();
  }
  return 0;
}

int comm_destroy(NcclCommunicator communicator) {
  delete static_cast<Member*>(communicator);
  return 0;
}

int group_start() {
  ++depth;
  return 0;
}

void put(const NcclCall& call) {
  const std::array<const void*, 1> read{call.from};
  StreamModel::instance().work(call.stream, read, {});
  Message message{std::string(static_cast<const char*>(call.from), call.bytes),
                  StreamModel::instance().record(call.stream)};
  const std::lock_guard lock(mutex);
  call.member->meeting->lines[{call.member->rank, call.peer}].push_back(std::move(message));
  if (call.bytes > 1) ++messages;
  changed.notify_all();
}

int take(const NcclCall& call) {
  Message message;
  {
    std::unique_lock lock(mutex);
    auto& line = call.member->meeting->lines[{call.peer, call.member->rank}];
    changed.wait(lock, [&] { return !line.empty() || sends_left == kNoMore; });
    if (line.empty()) return 0;  // a device that waits for ever does not keep its host
    message = std::move(line.front());
    line.pop_front();
  }
  if (message.bytes.size() != call.bytes) return kOtherSize;
  const std::array<const void*, 1> write{call.to};
  StreamModel::instance().block(call.stream, message.sent);
  StreamModel::instance().work(call.stream, {}, write);
  std::memcpy(call.to, message.bytes.data(), call.bytes);
  return 0;
}

int group_end() {
  if (--depth != 0) return kMakesNoSense;
  const std::vector<NcclCall> calls = std::exchange(group, {});
  for (const NcclCall& call : calls)
    if (call.from != nullptr) put(call);
  for (const NcclCall& call : calls)
    if (call.to != nullptr)
      if (const int code = take(call)) return code;
  return 0;
}

bool may_send() {
  const std::lock_guard lock(mutex);
  if (sends_left == kEvery) return true;
  if (sends_left != kNoMore) --sends_left;
  changed.notify_all();
  return sends_left != kNoMore;
}

int send(const void* from, std::size_t bytes, int type, int peer, NcclCommunicator communicator,
         NcclStream stream) {
  if (type != NcclApi::kByte) return kMakesNoSense;
  if (!may_send()) return kPulled;
  group.push_back({.from = from,
                   .bytes = bytes,
                   .peer = peer,
                   .member = static_cast<Member*>(communicator),
                   .stream = fake_stream(stream)});
  return 0;
}

int receive(void* to, std::size_t bytes, int type, int peer, NcclCommunicator communicator,
            NcclStream stream) {
  if (type != NcclApi::kByte) return kMakesNoSense;
  group.push_back({.to = to,
                   .bytes = bytes,
                   .peer = peer,
                   .member = static_cast<Member*>(communicator),
                   .stream = fake_stream(stream)});
  return 0;
}

int bus_id(char* text, int length, int device) {
  std::snprintf(text, static_cast<std::size_t>(length), "fake:%d", device);
  return 0;
}

const char* error_text(int code) {
  return code == kPulled ? "a cable was pulled" : "a call that makes no sense";
}

}  // namespace

const NcclApi* fake_nccl() {
  static const NcclApi api{
      get_unique_id, comm_init_rank, comm_get_async_error, comm_destroy, group_start, group_end,
      send,          receive,        error_text,           bus_id};
  return &api;
}

int take_nccl_messages() {
  return messages.exchange(0);
}

void fail_nccl_at(int send) {
  const std::lock_guard lock(mutex);
  sends_left = send;
}

void fail_nccl_in_background(bool fails) {
  told = false;
  background = fails;
}

void wait_until_nccl_is_asked() {
  told.wait(false);
}

}  // namespace pipewright::test
