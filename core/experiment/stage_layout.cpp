// SPDX-License-Identifier: Apache-2.0
#include "core/experiment/stage_layout.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/wording.h"

namespace pipewright {
namespace {

constexpr std::size_t kMostLetters = 100'000;  // and ends of stages, in one layout

/// What a layout stands for, letter by letter, with the place of each in the text.
struct WrittenOut {
  std::string letters;              ///< E, t, L and |
  std::vector<std::size_t> places;  ///< parallel to `letters`
};

[[noreturn]] void refuse_layout(std::size_t place, const std::string& message) {
  throw Error(ErrorKind::Experiment, concat(message, " at character ", place + 1));
}

class LayoutReader {
 public:
  explicit LayoutReader(std::string_view text) : text_(text) {}

  WrittenOut read() {
    for (skip(); at_ < text_.size(); skip()) {
      const std::size_t begin = out_.letters.size();
      if (text_[at_] == '(')
        read_group();
      else
        read_letter();
      repeat(begin);
    }
    return std::move(out_);
  }

 private:
  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == ',')) ++at_;
  }

  void read_letter() {
    const char letter = text_[at_];
    if (letter == ')') refuse_layout(at_, "has a ')' without its '('");
    if (letter == '*') refuse_layout(at_, "has a '*' with nothing to repeat");
    if (letter == 'm')
      refuse_layout(at_, "has an 'm', a multi-token prediction, which no model here has,");
    if (letter != 'E' && letter != 't' && letter != 'L' && letter != '|')
      refuse_layout(at_, concat("has ", shown_letter(), ", where E, t, L or | is expected,"));
    out_.letters += letter;
    out_.places.push_back(at_++);
  }

  /// The letter in quotes, if it can be printed alone.
  std::string shown_letter() const {
    const char letter = text_[at_];
    return letter > ' ' && letter < '\x7f' ? concat("a '", letter, "'")
                                           : std::string("another character");
  }

  void read_group() {
    const std::size_t open = at_++;
    for (skip(); at_ < text_.size() && text_[at_] != ')'; skip()) {
      if (text_[at_] == '(') refuse_layout(at_, "has a group within a group");
      const std::size_t begin = out_.letters.size();
      read_letter();
      repeat(begin);
    }
    if (at_ == text_.size()) refuse_layout(open, "has no ')' for the '('");
    ++at_;
    skip();
    if (at_ == text_.size() || text_[at_] != '*')
      refuse_layout(open, "has no number of repetitions, as in (t|)*2, behind the group");
  }

  /// Reads the number of times that the letters from `begin` on are repeated, if there is one.
  void repeat(std::size_t begin) {
    skip();
    if (at_ == text_.size() || text_[at_] != '*') return;
    const std::size_t star = at_++;
    skip();
    std::size_t times = 0, digits = 0;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_, ++digits)
      times = std::min(kMostLetters + 1, 10 * times + static_cast<std::size_t>(text_[at_] - '0'));
    if (digits == 0) refuse_layout(star, "has no number behind the '*'");
    const std::size_t length = out_.letters.size() - begin;
    if (begin + times * length > kMostLetters)
      refuse_layout(star, concat("stands for more than ", grouped_text(kMostLetters), " letters"));
    const std::string letters = out_.letters.substr(begin);
    const std::vector<std::size_t> places(out_.places.end() - static_cast<std::ptrdiff_t>(length),
                                          out_.places.end());
    out_.letters.resize(begin);
    out_.places.resize(begin);
    for (std::size_t i = 0; i < times; ++i) {
      out_.letters += letters;
      out_.places.insert(out_.places.end(), places.begin(), places.end());
    }
    skip();
    if (at_ < text_.size() && text_[at_] == '*') refuse_layout(at_, "has a second '*'");
  }

  std::string_view text_;
  std::size_t at_ = 0;
  WrittenOut out_;
};

/// Refuses a layout that does not begin with its only E, end with its only L, and have layers in
/// each stage.
void check_order(const WrittenOut& out, std::string_view text) {
  const std::string& letters = out.letters;
  if (letters.empty()) refuse_layout(0, "has no layers");
  if (letters.front() != 'E') refuse_layout(out.places.front(), "does not begin with E");
  if (letters.back() != 'L') refuse_layout(text.size() - 1, "does not end with L");
  if (const std::size_t second = letters.find('E', 1); second != std::string::npos)
    refuse_layout(out.places[second], "has a second E");
  if (const std::size_t first = letters.find('L'); first + 1 != letters.size())
    refuse_layout(out.places[letters.find_first_not_of('|', first + 1)], "has something behind L");
  if (const std::size_t empty = letters.find("||"); empty != std::string::npos)
    refuse_layout(out.places[empty + 1], "has a stage without layers");
}

/// The layers that are transformer blocks: [first, end).
struct NumberedLayers {
  std::size_t first = 0, end = 0;
};

/// The name without its number at the end, if it has that number; else "".
std::string_view without_number(std::string_view name, std::size_t number) {
  const std::string digits = std::to_string(number);
  return name.ends_with(digits) ? name.substr(0, name.size() - digits.size()) : std::string_view();
}

/// The first run of layers with one name and the numbers 0, 1, 2, …
NumberedLayers numbered_layers(const std::vector<LayerPtr>& layers) {
  for (std::size_t first = 0; first < layers.size(); ++first) {
    const std::string_view name = without_number(layers[first]->name(), 0);
    if (name.empty()) continue;
    std::size_t end = first + 1;
    while (end < layers.size() && without_number(layers[end]->name(), end - first) == name) ++end;
    return {first, end};
  }
  return {};
}

/// "t*3" for many letters, or the letters.
std::string repeated(const std::string& what, std::size_t times) {
  if (times > 2 || (what.size() > 1 && times > 1)) return concat(what, "*", times);
  std::string all;
  for (std::size_t i = 0; i < times; ++i) all += what;
  return all;
}

/// Joins stages with |, and writes equal ones that follow each other as a group. The last one,
/// which ends with L, is equal to none.
std::string joined_stages(const std::vector<std::string>& stages) {
  std::string all;
  for (std::size_t i = 0, end = 0; i + 1 < stages.size(); i = end) {
    end = i + 1;
    while (stages[end] == stages[i]) ++end;
    all += end - i > 1 ? repeated(concat("(", stages[i], "|)"), end - i) : concat(stages[i], "|");
  }
  return all + stages.back();
}

}  // namespace

bool looks_like_layout(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" ,");
  return first != std::string_view::npos &&
         (text[first] == 'E' || text.find_first_of("|*()") != std::string_view::npos);
}

std::vector<std::string> parse_stage_layout(std::string_view text) {
  const WrittenOut out = LayoutReader(text).read();
  check_order(out, text);
  std::vector<std::string> stages(1);
  for (const char letter : out.letters) {
    if (letter == '|')
      stages.emplace_back();
    else
      stages.back() += letter;
  }
  return stages;
}

std::vector<std::int64_t> balance_of_layout(const std::vector<std::string>& stages,
                                            const std::vector<LayerPtr>& layers) {
  const auto refuse = [](const std::string& message) {
    throw Error(ErrorKind::Experiment, concat("pipeline.balance is a layout of ", message));
  };
  const NumberedLayers blocks = numbered_layers(layers);
  if (blocks.end == blocks.first)
    refuse(
        "numbered blocks (t), which this model does not have; expected a list of layers per stage");
  std::size_t count = 0;
  for (const std::string& stage : stages)
    count += static_cast<std::size_t>(std::ranges::count(stage, 't'));
  if (count != blocks.end - blocks.first)
    refuse(concat(counted(count, "block"), " (t); the model has ", blocks.end - blocks.first, ", ",
                  layers[blocks.first]->name(), " … ", layers[blocks.end - 1]->name()));
  std::vector<std::int64_t> balance;
  for (const std::string& stage : stages) {
    std::size_t held = 0;
    for (const char letter : stage)
      held += letter == 'E' ? blocks.first : letter == 'L' ? layers.size() - blocks.end : 1;
    if (held == 0)
      refuse(concat("stages, of which stage ", balance.size(), " (", stage,
                    ") has none of the model's layers; a stage holds at least one"));
    balance.push_back(static_cast<std::int64_t>(held));
  }
  return balance;
}

std::string layout_of_balance(const std::vector<std::int64_t>& balance,
                              const std::vector<LayerPtr>& layers) {
  const NumberedLayers blocks = numbered_layers(layers);
  if (blocks.end == blocks.first || balance.empty()) return {};
  std::vector<std::string> stages;
  std::size_t begin = 0;
  for (const std::int64_t held : balance) {
    const std::size_t end = begin + static_cast<std::size_t>(held);
    // A cut within the embedding or the head has no letters.
    if ((end < blocks.first) || (end > blocks.end && end < layers.size())) return {};
    const std::size_t from = std::clamp(begin, blocks.first, blocks.end);
    const std::size_t to = std::clamp(end, blocks.first, blocks.end);
    stages.push_back(
        concat(begin == 0 ? "E" : "", repeated("t", to - from), end == layers.size() ? "L" : ""));
    begin = end;
  }
  return begin == layers.size() ? joined_stages(stages) : std::string();
}

}  // namespace pipewright
