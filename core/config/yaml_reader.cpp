// SPDX-License-Identifier: Apache-2.0
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <optional>
#include <sstream>
#include <unordered_map>

#include "core/base/wording.h"
#include "core/config/plain_scalar.h"
#include "core/config/value.h"
#include "core/config/yaml_fault.h"
#include "core/config/yaml_source.h"

namespace pipewright {
namespace {

constexpr std::size_t kMostNodes = 100'000;
constexpr std::size_t kMostKeys = 10'000;  // in one mapping
constexpr std::size_t kLongestText = std::size_t{1} << 16;
constexpr std::size_t kMostCopiedNodes = 100'000;
constexpr std::size_t kMostCopiedBytes = std::size_t{16} << 20;
constexpr std::size_t kLongestKey = 128;  // yaml-cpp reads keys of at most 1,024 bytes, escaped

/// Thrown to leave yaml-cpp early, after the reason was recorded as a problem.
struct Stop {};

/// Whether a text that begins with a quote also has the closing one. yaml-cpp accepts the end of
/// the file instead.
bool closes_quote(std::string_view text) {
  const char quote = text.front();
  for (std::size_t at = 1; at < text.size(); ++at) {
    if (quote == '"' && text[at] == '\\') {
      ++at;
    } else if (text[at] == quote) {
      const bool doubled = quote == '\'' && at + 1 < text.size() && text[at + 1] == quote;
      if (!doubled) return true;
      ++at;
    }
  }
  return false;
}

/// The size of a value. Counting stops at the limits for copies.
struct Extent {
  std::size_t nodes = 0, bytes = 0, height = 0;
};

void measure(const Value& value, std::size_t depth, Extent& extent) {
  if (extent.nodes > kMostCopiedNodes) return;
  ++extent.nodes;
  extent.bytes += value.text.size();
  extent.height = std::max(extent.height, depth);
  for (const Value& item : value.items) measure(item, depth + 1, extent);
  for (const auto& [key, field] : value.fields) {
    extent.bytes += key.size();
    measure(field, depth + 1, extent);
  }
}

/// Builds our values from yaml-cpp's events, and is stricter than yaml-cpp.
class YamlBuilder final : public YAML::EventHandler {
 public:
  YamlBuilder(const YamlSource& source, Problems& problems)
      : source_(source), problems_(problems) {}

  /// The document, once all of it has been read.
  Value take();
  YAML::Mark last() const { return last_; }

  void OnDocumentStart(const YAML::Mark& mark) override;
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override;
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override;
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override;
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value style) override {
    open(mark, tag, anchor, Value::sequence(), style);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value style) override {
    open(mark, tag, anchor, Value::mapping(), style);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Key {
    std::string text;
    Place place;
    std::string_view source;  // the text from the key on
    bool usable = true;
  };
  /// A sequence or mapping whose end has not been seen.
  struct Frame {
    Value value;
    YAML::Mark mark;
    YAML::anchor_t anchor = 0;
    bool flow = false;
    std::optional<Key> key;  // the key whose value comes next
    std::unordered_map<std::string, Place> keys;
  };

  bool expects_key() const {
    return !stack_.empty() && stack_.back().value.is(Value::Kind::Mapping) && !stack_.back().key;
  }
  Place place(const YAML::Mark& mark) const { return source_.place(mark.line, mark.column); }
  bool written_at(const YAML::Mark& mark, std::string_view word) const;
  std::optional<std::string> comma_hint(const YAML::Mark& mark, const std::string& text) const;
  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, Value value,
            YAML::EmitterStyle::value style);
  void close();
  void receive(Value value, YAML::anchor_t anchor);
  void receive_key(const YAML::Mark& mark, const std::string& text, const std::string& refusal);
  void check_absent_value(const YAML::Mark& mark, const Place& place);
  void remember(YAML::anchor_t anchor, const Value& value);
  Extent charge(const Value& value, const Place& place);
  void check_tag(const YAML::Mark& mark, const std::string& tag);
  void count_node(const YAML::Mark& mark);
  [[noreturn]] void stop(const Place& place, const std::string& message);

  const YamlSource& source_;
  Problems& problems_;
  Value root_;
  Problems absent_;  // absent values; dropped if a fault of syntax follows, which explains them
  std::vector<Frame> stack_;
  std::map<YAML::anchor_t, Value> anchored_;
  bool begun_ = false;
  std::size_t nodes_ = 0, copied_nodes_ = 0, copied_bytes_ = 0;
  YAML::Mark last_;
};

Value YamlBuilder::take() {
  problems_.add(absent_);
  return std::move(root_);
}

// yaml-cpp ends a document quietly at the first token that does not fit, and takes the rest for
// another one.
void YamlBuilder::OnDocumentStart(const YAML::Mark& mark) {
  if (begun_)
    stop(place(mark),
         "this does not belong to what stands before it; check indentation and brackets");
  begun_ = true;
}

void YamlBuilder::OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) {
  count_node(mark);
  if (expects_key()) return receive_key(mark, "", "a key is empty; give it a name");
  Value value;
  value.place = place(mark);
  for (const std::string_view word : {"Null", "NULL"})
    if (written_at(mark, word))
      problems_.add(value.place, read_plain_scalar(std::string(word)).refusal);
  const bool written = written_at(mark, "null") || written_at(mark, "~");
  if (!written && !stack_.empty()) {
    // yaml-cpp gives an absent value the place of what follows it.
    if (stack_.back().key) value.place = stack_.back().key->place;
    check_absent_value(mark, value.place);
  }
  receive(std::move(value), anchor);
}

// yaml-cpp reads a lone "b", where "b: 1" was meant, as a key without a value, and [1,,2] as three
// entries.
void YamlBuilder::check_absent_value(const YAML::Mark& mark, const Place& place) {
  Frame& frame = stack_.back();
  if (frame.key && frame.key->usable) {
    std::string_view between = frame.key->source;
    // At the end of a file without a final line break, the mark is that of the key itself.
    const std::size_t rest = source_.from(mark.line, mark.column).size();
    if (rest < between.size()) between.remove_suffix(rest);
    if (between.starts_with(frame.key->text)) between.remove_prefix(frame.key->text.size());
    if (between.find(':') != std::string_view::npos) return;
    absent_.add(place, concat("'", frame.key->text,
                              "' stands alone; expected 'key: value', with a space after ':'"));
    frame.key->usable = false;
  } else if (frame.flow && !frame.key) {
    absent_.add(place, "an entry of the list is empty; remove the extra comma");
  }
}

void YamlBuilder::OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) {
  count_node(mark);
  if (expects_key())
    return receive_key(mark, "", "a key cannot be an alias (*name); write the key itself");
  const auto found = anchored_.find(anchor);
  if (found == anchored_.end())
    stop(place(mark), "this alias (*name) stands within the value that it names (&name)");
  const Extent extent = charge(found->second, place(mark));
  if (stack_.size() + extent.height > kDeepestNesting)
    stop(place(mark), concat("the alias nests deeper than ", counted(kDeepestNesting, "level")));
  Value copy = found->second;
  copy.place = place(mark);
  receive(std::move(copy), 0);
}

void YamlBuilder::OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                           const std::string& text) {
  count_node(mark);
  check_tag(mark, tag);
  if (text.size() > kLongestText)
    stop(place(mark), concat("a text has ", counted(text.size(), "byte"), "; at most ",
                             grouped_text(kLongestText), " are read"));
  const std::string_view source = source_.from(mark.line, mark.column);
  if ((source.starts_with('"') || source.starts_with('\'')) && !closes_quote(source))
    stop(place(mark), explained_fault("illegal EOF in scalar"));
  if (text.find('\0') != std::string::npos)
    problems_.add(place(mark), "the text holds a NUL character; remove it");
  const bool plain = tag == "?";
  PlainScalar scalar = plain ? read_plain_scalar(text) : PlainScalar{Value::of(text), {}};
  if (expects_key()) {
    if (plain && text == "<<")
      scalar.refusal = "merge keys ('<<') are not supported; write the keys out, or use 'extends'";
    else if (plain && !(scalar.refusal.empty() && scalar.value.is(Value::Kind::Text)))
      scalar.refusal =
          concat("the key '", text, "' is not a text; ",
                 comma_hint(mark, text).value_or(concat("write \"", text, "\" in quotes")));
    return receive_key(mark, text, scalar.refusal);
  }
  scalar.value.place = place(mark);
  if (!scalar.refusal.empty()) {
    problems_.add(scalar.value.place, scalar.refusal);
    scalar.value.refused = true;
  }
  receive(std::move(scalar.value), anchor);
}

/// The hint for a number with a comma in a flow mapping: of {lr: 0,1} YAML makes the keys lr and 1.
std::optional<std::string> YamlBuilder::comma_hint(const YAML::Mark& mark,
                                                   const std::string& text) const {
  const auto column = static_cast<std::size_t>(mark.column);
  const std::string_view before = source_.from(mark.line, 0).substr(0, column);
  if (!stack_.back().flow || !before.ends_with(',') || !std::ranges::all_of(text, is_digit))
    return std::nullopt;
  const std::size_t begin = before.find_last_not_of("0123456789", column - 2) + 1;
  const std::string_view number = before.substr(begin, column - 1 - begin);
  if (number.empty()) return std::nullopt;
  const bool groups = text.size() == 3 && number != "0";
  return concat("a comma ends the value before it, so write ", number, groups ? "" : ".", text,
                groups ? " without a comma" : " with a point");
}

/// Whether this very word, and not a longer one, is written at the mark.
bool YamlBuilder::written_at(const YAML::Mark& mark, std::string_view word) const {
  const std::string_view text = source_.from(mark.line, mark.column);
  if (!text.starts_with(word)) return false;
  return text.size() == word.size() ||
         std::string_view(" \t\n,]}").find(text[word.size()]) != std::string_view::npos;
}

void YamlBuilder::open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       Value value, YAML::EmitterStyle::value style) {
  count_node(mark);
  check_tag(mark, tag);
  if (stack_.size() == kDeepestNesting)
    stop(place(mark), concat("the document nests deeper than ", counted(kDeepestNesting, "level")));
  value.place = place(mark);
  Frame& frame = stack_.emplace_back();
  frame.value = std::move(value);
  frame.mark = mark;
  frame.anchor = anchor;
  frame.flow = style == YAML::EmitterStyle::Flow;
}

void YamlBuilder::close() {
  Frame frame = std::move(stack_.back());
  stack_.pop_back();
  if (!expects_key()) return receive(std::move(frame.value), frame.anchor);
  receive_key(frame.mark, "", concat("a key is ", frame.value.described(), "; expected a text"));
}

void YamlBuilder::receive(Value value, YAML::anchor_t anchor) {
  remember(anchor, value);
  if (stack_.empty()) {
    root_ = std::move(value);
    return;
  }
  Frame& frame = stack_.back();
  if (frame.value.is(Value::Kind::Sequence)) {
    frame.value.items.push_back(std::move(value));
    return;
  }
  if (frame.key->usable) {
    value.key_line = frame.key->place.line;
    value.key_column = frame.key->place.column;
    frame.value.fields.emplace_back(std::move(frame.key->text), std::move(value));
  }
  frame.key.reset();
}

void YamlBuilder::receive_key(const YAML::Mark& mark, const std::string& text,
                              const std::string& refusal) {
  Frame& frame = stack_.back();
  const Place place = this->place(mark);
  if (frame.keys.size() == kMostKeys)
    stop(place, concat("a mapping has more than ", counted(kMostKeys, "key")));
  frame.key = Key{text, place, source_.from(mark.line, mark.column), refusal.empty()};
  if (!refusal.empty()) return problems_.add(place, refusal);
  if (text.size() > kLongestKey) {
    frame.key->usable = false;
    problems_.add(place, concat("a key has ", counted(text.size(), "byte"), "; at most ",
                                kLongestKey, " are read"));
  } else if (const auto [first, added] = frame.keys.emplace(text, place); !added) {
    frame.key->usable = false;
    problems_.add(place,
                  concat("the key '", text, "' is given twice, first in line ", first->second.line,
                         ", column ", first->second.column, "; remove one of them"));
  }
}

void YamlBuilder::remember(YAML::anchor_t anchor, const Value& value) {
  if (anchor == 0) return;
  charge(value, value.place);
  anchored_.emplace(anchor, value);
}

Extent YamlBuilder::charge(const Value& value, const Place& place) {
  Extent extent;
  measure(value, 1, extent);
  copied_nodes_ += extent.nodes;
  copied_bytes_ += extent.bytes;
  if (copied_nodes_ > kMostCopiedNodes || copied_bytes_ > kMostCopiedBytes)
    stop(place, "anchors and aliases grow the document beyond 100,000 nodes or 16 MiB");
  return extent;
}

void YamlBuilder::check_tag(const YAML::Mark& mark, const std::string& tag) {
  const bool written = written_at(mark, "!") || (tag != "?" && tag != "!" && !tag.empty());
  if (written)
    problems_.add(place(mark),
                  "tags ('!', '!!str', …) are not supported; remove the tag, and put a text that "
                  "begins with '!' in quotes");
}

void YamlBuilder::count_node(const YAML::Mark& mark) {
  last_ = mark;
  if (++nodes_ > kMostNodes)
    stop(place(mark), concat("the document has more than ", counted(kMostNodes, "value")));
}

void YamlBuilder::stop(const Place& place, const std::string& message) {
  problems_.add(place, message);
  throw Stop();
}

/// The first line up to `last` that is indented with a tab; −1 if none is. Lines count from 0.
int tab_indented_line(const std::string& text, int last) {
  const std::vector<std::string> lines = split(text, '\n');
  for (int line = 0; line <= last && line < static_cast<int>(lines.size()); ++line) {
    const std::string& content = lines[static_cast<std::size_t>(line)];
    const std::size_t first = content.find_first_not_of(" \t");
    if (first != std::string::npos && content.find('\t') < first) return line;
  }
  return -1;
}

/// Parses a document; nullopt when it cannot be read to its end.
std::optional<Value> parsed(const YamlSource& source, Problems& problems) {
  if (!source.check(problems)) return std::nullopt;
  YamlBuilder builder(source, problems);
  try {
    std::istringstream stream(source.text());
    YAML::Parser parser(stream);
    // Never in a loop: after a fault, yaml-cpp can report empty documents forever. The builder
    // stops at the start of a second one.
    parser.HandleNextDocument(builder);
    if (parser) parser.HandleNextDocument(builder);
    Value root = builder.take();
    if (root.place.line == 0) root.place = source.place(0, 0);  // the place of an empty file
    return root;
  } catch (const Stop&) {
  } catch (const YAML::Exception& exception) {
    const YAML::Mark mark = exception.mark.is_null() ? builder.last() : exception.mark;
    const int tabbed = tab_indented_line(source.text(), mark.line);
    const auto slip = slip_behind(exception.msg, source, mark.line, mark.column);
    if (slip && tabbed < 0)
      problems.add(slip->place, slip->message);
    else if (tabbed >= 0)
      problems.add(source.place(tabbed, 0), explained_fault("illegal tab"));
    else
      problems.add(source.place(mark.line, mark.column), explained_fault(exception.msg));
  }
  return std::nullopt;
}

void strip_lines(Value& value) {
  value.place.line = value.place.column = value.key_line = value.key_column = 0;
  for (Value& item : value.items) strip_lines(item);
  for (auto& [key, field] : value.fields) strip_lines(field);
}

}  // namespace

Value parse_yaml(std::string_view text, const std::string& name, Problems& faults) {
  std::optional<Value> value = parsed(YamlSource(text, name), faults);
  if (!value) faults.throw_if_any();
  return value.value_or(Value());
}

Value parse_yaml(std::string_view text, const std::string& name) {
  Problems faults;
  Value value = parse_yaml(text, name, faults);
  faults.throw_if_any();
  return value;
}

Value parse_scalar(std::string_view text, const std::string& name) {
  text = trimmed(text);
  Problems problems;
  Value value = parsed(YamlSource(text, name), problems).value_or(Value());
  // The shell removes the quotes of an empty text, and on a command line nobody expects '#' to
  // begin a comment.
  const bool comment = text.starts_with('#') || text.find(" #") != std::string_view::npos;
  if (text.empty()) value = Value::of("");
  if (comment && value.items.empty() && value.fields.empty() && !text.starts_with('"') &&
      !text.starts_with('\''))
    problems.add({name, 0, 0}, "'#' begins a comment; put the value in quotes");
  Problems without_lines;
  for (const Error& error : problems.errors()) without_lines.add({name, 0, 0}, error.message());
  without_lines.throw_if_any();
  strip_lines(value);
  value.place.file = name;
  return value;
}

}  // namespace pipewright
