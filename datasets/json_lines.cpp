// SPDX-License-Identifier: Apache-2.0
/// Texts of the user's own with a class each: a file with a JSON object on every line, such as
/// {"text": "a fine film", "label": "good"}. Labels are whole numbers from 0, or names; names are
/// ranked by their order as bytes. Texts become ranks of their words (ranked_words.h), counted in
/// the training texts.
#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string_view>

#include "core/base/error_at.h"
#include "core/base/utf8.h"
#include "core/base/wording.h"
#include "core/config/json.h"
#include "core/tensor_files/pattern.h"
#include "datasets/drawn_split.h"
#include "datasets/texts/labelled_texts.h"
#include "datasets/texts/ranked_words.h"
#include "datasets/texts/text_file.h"

namespace pipewright {
namespace {

constexpr std::int64_t kMostClasses = 256;  // LabelledTexts has a byte for each
constexpr const char* kJsonLinesOrigin = "a file of your own, with a JSON object on every line";

constexpr double kShareOfTestTexts = 0.2;

struct LabelledLine {
  std::string text;  // in lower case
  Value label;
  std::string where;
};

class JsonLines final : public LabelledTextDataset {
 public:
  explicit JsonLines(Options& options)
      : file_(options.required_path("file",
                                    "A file with a JSON object on every line, such as {\"text\": "
                                    "\"a fine film\", \"label\": \"good\"}, plain or gzipped "
                                    "(.gz). Labels are whole numbers from 0, or names.")),
        test_file_(options.path("test_file", "", "A file of the test texts of the same form.")),
        text_(options.text("text", "text", "Key of the texts.")),
        label_(options.text("label", "label", "Key of the labels.")),
        split_(options, kShareOfTestTexts) {
    look_.padding = kRankedPadding;
    look_.vocabulary = options.integer("words", 10'000,
                                       "Size of the vocabulary, marks included: rarer words of "
                                       "the training texts are one token.",
                                       Range{kFirstRanked, 1 << 30});
    look_.tokens = options.integer(
        "tokens", 128,
        "Tokens of each sample: longer texts keep their first words, shorter ones are padded.",
        Range{1, 1 << 20});
    if (!test_file_.empty() && options.given("split"))
      options.problem("split", "is given beside dataset.test_file; expected one of them");
    if (test_file_.empty() && !split_.wanted())
      options.problem("split",
                      "is 0; expected the share or number of test texts, as 0.2, or "
                      "dataset.test_file");
  }

  std::vector<std::string> remarks() const override {
    if (unused_class_.empty()) return {};
    return {concat("'", label_, "' of ", file_.string(), ": ", unused_class_)};
  }

  void open(const DatasetRequest&) override {
    const std::vector<LabelledLine> all = lines_in(file_);
    std::vector<LabelledLine> train, test;
    if (test_file_.empty()) {
      const auto parts = split_.draw(std::ssize(all), file_.filename().string());
      for (const std::int64_t i : parts[0]) train.push_back(all[static_cast<std::size_t>(i)]);
      for (const std::int64_t i : parts[1]) test.push_back(all[static_cast<std::size_t>(i)]);
    } else {
      train = all;
      test = lines_in(test_file_);
    }
    const std::vector<std::string> names = names_of(train);
    remark_on_classes(train, test);
    WordCounts counts;
    for (const LabelledLine& line : train) count_words(line.text, counts);
    const RankedWords words(counts, look_.vocabulary);
    look_.classes = std::ssize(names);
    train_ = tokenised(train, words, names);
    test_ = tokenised(test, words, names);
  }

 private:
  std::vector<LabelledLine> lines_in(const std::filesystem::path& path) const {
    const std::string text = read_text(path, kJsonLinesOrigin);
    std::vector<LabelledLine> lines;
    std::size_t number = 0;
    for (const std::string_view line : lines_of(text)) {
      ++number;
      if (!words_of(line).empty())
        lines.push_back(parsed(line, concat(path.string(), ":", number)));
    }
    if (lines.empty())
      throw data_error(path,
                       "has no sample, only empty lines; expected a JSON object on every line");
    return lines;
  }

  /// The label of a class: 1 for 1.0, as pandas may write it, and a name for a truth value.
  static Value class_of(const Value& label) {
    if (label.is(Value::Kind::Flag)) return Value::of(std::string(label.flag ? "true" : "false"));
    const bool whole = label.is(Value::Kind::Number) && label.number == std::floor(label.number) &&
                       std::abs(label.number) <= static_cast<double>(kMostClasses);
    return whole ? Value::of(static_cast<std::int64_t>(label.number)) : label;
  }

  LabelledLine parsed(std::string_view line, const std::string& where) const {
    const Value object = parse_json(line, where);
    const auto field = [&](const std::string& key) -> const Value& {
      if (const Value* const found = object.find(key)) return *found;
      throw data_error(where, "has no '", key, "'; expected an object such as {\"", text_,
                       "\": \"a fine film\", \"", label_, "\": \"good\"}");
    };
    const Value &text = field(text_), &given = field(label_);
    if (!text.is(Value::Kind::Text))
      throw data_error(where, "'", text_, "' is ", text.shown(), "; expected a text");
    const Value label = class_of(given);
    const bool number = label.is(Value::Kind::Integer) && label.integer >= 0;
    if (!number && !label.is(Value::Kind::Text))
      throw data_error(where, "'", label_, "' is ", label.shown(),
                       "; expected a whole number from 0, or a name");
    return {lower_case(text.text), label, where};
  }

  /// The names of classes: those of the training texts in order, or numbers up to the largest.
  std::vector<std::string> names_of(const std::vector<LabelledLine>& train) const {
    std::set<std::string> names;
    std::int64_t most = -1;
    for (const LabelledLine& line : train) {
      if (line.label.is(Value::Kind::Text))
        names.insert(line.label.text);
      else
        most = std::max(most, line.label.integer);
      if (most >= 0 && !names.empty())
        throw data_error(line.where, "'", label_, "' is ", line.label.shown(),
                         "; labels are all numbers, or all names");
      if (most >= kMostClasses || std::ssize(names) > kMostClasses)
        throw data_error(line.where, "'", label_, "' is ", line.label.shown(),
                         "; expected at most ", kMostClasses, " classes");
    }
    if (most < 0) return {names.begin(), names.end()};
    std::vector<std::string> numbers;
    for (std::int64_t i = 0; i <= most; ++i) numbers.push_back(std::to_string(i));
    return numbers;
  }

  void remark_on_classes(const std::vector<LabelledLine>& train,
                         const std::vector<LabelledLine>& test) {
    if (train.empty() || train.front().label.is(Value::Kind::Text)) return;
    std::int64_t least = kMostClasses, most = 0;
    for (const std::vector<LabelledLine>* part : {&train, &test})
      for (const LabelledLine& line : *part) {
        least = std::min(least, line.label.integer);
        most = std::max(most, line.label.integer);
      }
    unused_class_ = unused_class_remark(least, most);
  }

  LabelledTexts tokenised(const std::vector<LabelledLine>& lines, const RankedWords& words,
                          const std::vector<std::string>& names) const {
    LabelledTexts texts;
    for (const LabelledLine& line : lines) {
      const std::string label =
          line.label.is(Value::Kind::Text) ? line.label.text : std::to_string(line.label.integer);
      const auto name = std::ranges::find(names, label);
      if (name == names.end())
        throw data_error(line.where, "'", label_, "' is ", line.label.shown(),
                         ", a class that no training text has");
      texts.append(words.tokens(line.text, look_.tokens),
                   static_cast<std::uint8_t>(name - names.begin()));
    }
    return texts;
  }

  std::filesystem::path file_, test_file_;
  std::string text_, label_;
  std::string unused_class_;  // a remark
  DrawnSplit split_;
};

}  // namespace

PIPEWRIGHT_DATASET(json_lines, JsonLines,
                   "Your texts with a class each: a JSON object on every line of a file.")

}  // namespace pipewright
