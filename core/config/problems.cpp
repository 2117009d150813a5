// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <tuple>

#include "core/base/printable.h"
#include "core/config/value.h"

namespace pipewright {
namespace {

constexpr std::size_t kMostKept = 100;

/// Whether `a` comes before `b` in messages: places with a line first, by file, line and column;
/// then those without one, such as "--set".
bool stands_before(const Place& a, const Place& b) {
  const auto key = [](const Place& place) {
    return std::tuple<bool, const std::string&, int, int>(place.line == 0, place.file, place.line,
                                                          place.column);
  };
  return key(a) < key(b);
}

}  // namespace

void Problems::add(const Place& place, const std::string& message, ErrorKind kind) {
  Error error(kind, printable(message), place.text());  // keys may hold line feeds
  // The same problem is found twice in an aliased value and in a base file that two files extend.
  const auto same = [&](const Error& known) {
    return std::string_view(known.what()) == error.what();
  };
  if (std::ranges::any_of(errors_, same)) return;
  if (errors_.size() == kMostKept) {
    ++dropped_;
    return;
  }
  const auto after = std::ranges::upper_bound(places_, place, stands_before);
  errors_.insert(errors_.begin() + (after - places_.begin()), std::move(error));
  places_.insert(after, place);
}

void Problems::add(const Problems& others) {
  for (std::size_t i = 0; i < others.errors_.size(); ++i)
    add(others.places_[i], others.errors_[i].message(), others.errors_[i].kind());
  dropped_ += others.dropped_;
}

void Problems::throw_if_any() const {
  if (errors_.empty()) return;
  if (errors_.size() == 1) throw errors_.front();
  std::vector<std::string> lines;
  for (const Error& error : errors_) lines.emplace_back(error.what());
  if (dropped_ > 0) lines.push_back(concat("… and ", dropped_, " more problems"));
  throw Error(errors_.front().kind(), join(lines, "\n"));
}

}  // namespace pipewright
