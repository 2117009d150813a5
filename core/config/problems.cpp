// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <tuple>

#include "core/base/printable.h"
#include "core/base/wording.h"
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

/// The place in front of a message: "--set" alone, without the option that it sets, where the
/// message names that option itself.
std::string where_text(const Place& place, std::string_view message) {
  const std::size_t space = place.file.find(' ');
  if (place.line > 0 || !place.file.starts_with("--") || space == std::string::npos)
    return place.text();
  const std::string key = place.file.substr(space + 1);
  const std::string_view rest = message.starts_with(key) ? message.substr(key.size()) : " ";
  const bool named = !rest.starts_with(' ') || rest.starts_with(" is ") ||
                     rest.starts_with(" has ") || message.find("'" + key + "'") != message.npos;
  return named ? place.file.substr(0, space) : place.file;
}

}  // namespace

void Problems::add(const Place& place, const std::string& message, ErrorKind kind) {
  Error error(kind, printable(message), where_text(place, message));  // keys may hold line feeds
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
  if (dropped_ > 0) lines.push_back(concat("… and ", counted(dropped_, "more problem")));
  throw Error(errors_.front().kind(), join(lines, "\n"));
}

}  // namespace pipewright
