// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/trace_recorder.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "core/base/as_size.h"
#include "core/base/error.h"
#include "core/system/host_name.h"

namespace pipewright {
namespace {

/// A process's message about its worker: start on the host's clock, name of the host, spans.
std::string packed(double start, const std::vector<Span>& spans) {
  std::string bytes(sizeof start, '\0');
  std::memcpy(bytes.data(), &start, sizeof start);
  const std::size_t head = bytes.size();
  bytes.resize(head + spans.size() * sizeof(Span));
  if (!spans.empty()) std::memcpy(bytes.data() + head, spans.data(), spans.size() * sizeof(Span));
  return bytes + host_name();
}

struct Unpacked {
  double start = 0;
  std::vector<Span> spans;
  std::string host;
};

/// `count` spans are in the bytes.
Unpacked unpacked(const std::string& bytes, std::size_t count) {
  Unpacked result{.spans = std::vector<Span>(count), .host = {}};
  const std::size_t size = count * sizeof(Span);
  PIPEWRIGHT_CHECK(bytes.size() >= sizeof(double) + size, "a trace of ", bytes.size(), " bytes");
  std::memcpy(&result.start, bytes.data(), sizeof(double));
  if (count > 0) std::memcpy(result.spans.data(), bytes.data() + sizeof(double), size);
  result.host = bytes.substr(sizeof(double) + size);
  return result;
}

}  // namespace

TraceRecorder::TraceRecorder(const Program& program, std::vector<std::vector<Span>>* trace)
    : program_(program), trace_(trace), open_(program.workers.size()) {
  if (trace_ == nullptr) return;
  PIPEWRIGHT_CHECK(!program.loop, "a trace needs the whole schedule");
  trace_->clear();
  for (const auto& worker : program.workers) trace_->emplace_back().reserve(worker.size());
}

void TraceRecorder::begin(int worker) {
  if (on()) open_[as_size(worker)] = {.begin = now()};
}

void TraceRecorder::arrived(int worker) {
  if (on()) open_[as_size(worker)].begin = now() - open_[as_size(worker)].decoding;
}

void TraceRecorder::end(int worker) {
  if (!on()) return;
  open_[as_size(worker)].end = now();
  (*trace_)[as_size(worker)].push_back(open_[as_size(worker)]);
}

void TraceRecorder::gather(Team& team) {
  if (!on()) return;
  const auto rank = as_size(team.rank());
  const double start = std::chrono::duration<double>(start_.time_since_epoch()).count();
  const std::vector<Span> none;
  const std::vector<std::string> all =
      team.gather(packed(start, rank < trace_->size() ? (*trace_)[rank] : none));
  for (std::size_t worker = 0; worker < std::min(all.size(), trace_->size()); ++worker) {
    Unpacked of = unpacked(all[worker], program_.workers[worker].size());
    const double later = of.host == host_name() ? of.start - start : 0;
    for (Span& span : of.spans) {
      span.begin += later;
      span.end += later;
    }
    (*trace_)[worker] = std::move(of.spans);
  }
}

}  // namespace pipewright
