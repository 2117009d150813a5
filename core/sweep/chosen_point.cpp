// SPDX-License-Identifier: Apache-2.0
#include "core/sweep/chosen_point.h"

#include <algorithm>
#include <set>

#include "core/base/error.h"
#include "core/base/parsed.h"
#include "core/base/text.h"
#include "core/config/json.h"
#include "core/experiment/identity.h"
#include "core/sweep/sweep_plan.h"

namespace pipewright {
namespace {

using Words = std::vector<std::string>;

/// A number in the spelling of titles, so that 0.00001, 1e-5 and 1e-05 are one word; other words
/// as they are.
std::string in_one_spelling(std::string word) {
  const auto number = parsed<double>(word);
  return number ? number_text(*number) : word;
}

/// Splits a name into words: "stages=4, gpipe" has stages, 4, gpipe.
Words words_of(const std::string& text) {
  Words words;
  std::string word;
  for (const char c : text + " ") {
    if (std::string_view(" \t,=:").find(c) == std::string_view::npos) {
      word += c;
    } else if (!word.empty()) {
      words.push_back(in_one_spelling(std::move(word)));
      word.clear();
    }
  }
  return words;
}

/// Parts of a point's possible names: its label, and for each varied key the value and the key with
/// the value.
std::vector<Words> parts_of(const SweepPoint& point) {
  std::vector<Words> parts{words_of(point.label)};
  for (const auto& [key, value] : point.varied) {
    if (key == "label") continue;
    const std::string shown = plain_text(value);
    if (value.is(Value::Kind::Text)) parts.push_back(words_of(shown));
    parts.push_back(words_of(concat(key, " ", shown)));
    parts.push_back(words_of(concat(short_key(key), " ", shown)));
  }
  return parts;
}

/// Whether the words are a concatenation of some of the parts.
bool is_made_of(const Words& words, const std::vector<Words>& parts) {
  std::vector<bool> reached(words.size() + 1, false);
  reached[0] = true;
  for (std::size_t i = 0; i < words.size(); ++i)
    for (const Words& part : parts)
      if (reached[i] && i + part.size() <= words.size() &&
          std::equal(part.begin(), part.end(), words.begin() + static_cast<std::ptrdiff_t>(i)))
        reached[i + part.size()] = true;
  return !words.empty() && reached.back();
}

std::vector<std::size_t> matches(const std::vector<SweepPoint>& points,
                                 const std::vector<std::string>& titles, const std::string& name) {
  const auto title = std::ranges::find(titles, name);
  if (title != titles.end()) return {static_cast<std::size_t>(title - titles.begin())};
  const auto number = parsed<std::size_t>(name);
  if (number && *number >= 1 && *number <= points.size()) return {*number - 1};
  std::vector<std::size_t> found;
  const Words words = words_of(name);
  for (std::size_t i = 0; i < points.size(); ++i)
    if (is_made_of(words, parts_of(points[i]))) found.push_back(i);
  return found;
}

/// The first three titles in words: "'a', 'b' and 'c'".
std::string quoted_titles(const std::vector<std::string>& titles) {
  constexpr std::size_t kMost = 3;
  std::string text;
  for (std::size_t i = 0; i < std::min(kMost, titles.size()); ++i)
    text += concat(i == 0 ? "" : ", ", "'", titles[i], "'");
  return titles.size() > kMost ? text + ", …" : text;
}

/// All titles that share the largest number of words with the name; if none shares a word, those
/// with the label nearest to it.
std::vector<std::string> nearest_titles(const std::vector<SweepPoint>& points,
                                        const std::vector<std::string>& titles,
                                        const std::string& name) {
  const Words words = words_of(name);
  const std::set<std::string> wanted(words.begin(), words.end());
  std::vector<std::string> labels;
  for (const SweepPoint& point : points) labels.push_back(point.label);
  const std::string label = nearest(name, labels);
  std::vector<std::string> best;
  std::ptrdiff_t most = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    std::ptrdiff_t shared = 2 * std::ranges::count_if(words_of(titles[i]), [&](const auto& word) {
                              return wanted.contains(word);
                            });
    if (points[i].label == label) ++shared;
    if (shared > most) best.clear();
    most = std::max(most, shared);
    if (shared == most) best.push_back(titles[i]);
  }
  return best;
}

}  // namespace

std::size_t count_points(const Value& document) {
  const Value* sweep = document.find("sweep");
  if (sweep == nullptr || sweep->is(Value::Kind::Null)) return 0;
  const std::vector<SweepPoint> points = expand_sweep(document);
  return points.front().varied.empty() ? 0 : points.size();
}

ChosenPoint choose_point(const Value& document, const std::string& name) {
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorKind::Experiment, concat("'", name, "' ", why), "--point");
  };
  const std::vector<SweepPoint> points = expand_sweep_alone(document);
  if (points.front().varied.empty()) refuse("chooses nothing: the file has no sweep");
  const std::vector<std::string> titles = run_titles(points);
  const std::vector<std::size_t> found = matches(points, titles, name);
  if (found.empty())
    refuse(concat("is no point of the sweep: expected a number from 1 to ", points.size(),
                  " or a name such as ", quoted_titles(nearest_titles(points, titles, name)),
                  "; `pipewright check FILE` lists all"));
  std::vector<std::string> called;  // one title for points that differ only in their seed
  std::set<std::string> seen;
  for (const std::size_t i : found)
    if (seen.insert(digest_without_seed(points[i].document)).second) called.push_back(titles[i]);
  if (called.size() > 1)
    refuse(concat("fits ", found.size(), " points of the sweep: ", quoted_titles(called),
                  "; name one of them"));
  return {.point = points[found.front()],
          .number = found.front() + 1,
          .count = points.size(),
          .title = titles[found.front()],
          .reseeded = found.size() - 1};
}

}  // namespace pipewright
