// SPDX-License-Identifier: Apache-2.0
#include "core/processes/team_notes.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

namespace pipewright {
namespace {

std::string one_line(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  return text;
}

std::string text_of(const HelloNote& note) {
  const auto& [process, space, host] = note.process;
  return concat("H", process, "\n", one_line(space), "\n", one_line(host));
}

std::string text_of(const HeartbeatNote& note) {
  return concat("B", note.still.count(), "\n", one_line(note.activity));
}

std::string text_of(const FailureNote& note) {
  return concat("F", static_cast<int>(note.error.kind()), "\n", note.speaker, "\n",
                one_line(note.error.where()), "\n", one_line(note.error.message()));
}

std::string text_of(const FarewellNote&) {
  return "L";
}

std::string text_of(const FinishedNote&) {
  return "E";
}

[[noreturn]] void damaged() {
  throw Error(ErrorKind::Worker, "a damaged note came over the link");
}

/// A number from 0 to `most`, and nothing else.
std::int64_t number(const std::string& text, std::int64_t most) {
  std::int64_t value = -1;
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stopped != end || value < 0 || value > most) damaged();
  return value;
}

ErrorKind kind_of(std::int64_t number) {
  constexpr std::array kKinds{ErrorKind::Experiment, ErrorKind::Data,       ErrorKind::Schedule,
                              ErrorKind::Worker,     ErrorKind::NotFinite,  ErrorKind::Sweep,
                              ErrorKind::Bug,        ErrorKind::Interrupted};
  const auto kind = static_cast<ErrorKind>(number);
  if (std::ranges::count(kKinds, kind) == 0) damaged();
  return kind;
}

}  // namespace

std::string note_text(const TeamNote& note) {
  return std::visit([](const auto& each) { return text_of(each); }, note);
}

TeamNote parsed_note(const std::string& text, int processes) {
  constexpr std::int64_t kMostMilliseconds = std::int64_t{1} << 40;
  if (text.empty()) damaged();
  const std::vector<std::string> lines = split(text.substr(1), '\n');
  const auto expect = [&](std::size_t count) {
    if (lines.size() != count) damaged();
  };
  switch (text[0]) {
    case 'H':
      expect(3);
      return HelloNote{{static_cast<int>(number(lines[0], std::numeric_limits<int>::max())),
                        lines[1], lines[2]}};
    case 'B':
      expect(2);
      return HeartbeatNote{std::chrono::milliseconds(number(lines[0], kMostMilliseconds)),
                           lines[1]};
    case 'F': {
      expect(4);
      const ErrorKind kind = kind_of(number(lines[0], 255));
      return FailureNote{Error(kind, lines[3], lines[2]),
                         static_cast<int>(number(lines[1], processes - 1))};
    }
    case 'L':
      if (text.size() == 1) return FarewellNote{};
      break;
    case 'E':
      if (text.size() == 1) return FinishedNote{};
      break;
    default: break;
  }
  damaged();
}

}  // namespace pipewright
