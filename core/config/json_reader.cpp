// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "core/base/error_at.h"
#include "core/base/printable.h"
#include "core/config/json.h"
#include "core/system/file.h"

namespace pipewright {
namespace {

constexpr std::size_t kMostValues = 1'000'000;
constexpr std::size_t kShownOfKey = 30;  // characters of a wrong one
constexpr std::uint64_t kLargestJsonFile = std::uint64_t{16} << 20;

/// Builds our values from the parser's events; an event that returns false ends the reading.
class JsonBuilder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  Value take() { return std::move(root_); }
  const std::string& fault() const { return fault_; }

  bool null() override { return receive(Value()); }
  bool boolean(bool flag) override { return receive(Value::of(flag)); }
  bool number_integer(number_integer_t integer) override {
    return receive(Value::of(std::int64_t{integer}));
  }
  bool number_unsigned(number_unsigned_t integer) override {
    constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    return receive(integer <= kMost ? Value::of(static_cast<std::int64_t>(integer))
                                    : Value::of(static_cast<double>(integer)));
  }
  bool number_float(number_float_t number, const string_t&) override {
    return receive(Value::of(number));
  }
  bool string(string_t& text) override { return receive(Value::of(std::move(text))); }
  bool binary(binary_t&) override { return refuse("has binary values"); }
  bool start_object(std::size_t) override { return open(Value::mapping()); }
  bool key(string_t& text) override {
    if (!open_.back().keys.insert(text).second)
      return refuse(concat("has the key '", printable(text, kShownOfKey), "' twice"));
    open_.back().key = std::move(text);
    return true;
  }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(Value::sequence()); }
  bool end_array() override { return close(); }
  bool parse_error(std::size_t byte, const std::string&,
                   const nlohmann::detail::exception&) override {
    return refuse(concat("is no JSON at byte ", byte));
  }

 private:
  /// A list or mapping whose end has not been read, the key of its value that comes next, and all
  /// keys so far.
  struct Frame {
    Value value;
    std::string key;
    std::unordered_set<std::string> keys = {};
  };

  bool refuse(std::string fault) {
    fault_ = std::move(fault);
    return false;
  }

  bool receive(Value value) {
    if (++values_ > kMostValues) return refuse(concat("has more than ", kMostValues, " values"));
    put(std::move(value));
    return true;
  }

  void put(Value value) {
    if (open_.empty())
      root_ = std::move(value);
    else if (open_.back().value.is(Value::Kind::Sequence))
      open_.back().value.items.push_back(std::move(value));
    else
      open_.back().value.fields.emplace_back(std::move(open_.back().key), std::move(value));
  }

  bool open(Value value) {
    if (open_.size() == kDeepestNesting)
      return refuse(concat("nests deeper than ", kDeepestNesting, " levels"));
    if (++values_ > kMostValues) return refuse(concat("has more than ", kMostValues, " values"));
    open_.push_back({std::move(value), {}});
    return true;
  }

  bool close() {
    Value value = std::move(open_.back().value);
    open_.pop_back();
    put(std::move(value));
    return true;
  }

  Value root_;
  std::vector<Frame> open_;
  std::size_t values_ = 0;
  std::string fault_;
};

}  // namespace

Value parse_json(std::string_view text, const std::string& name) {
  JsonBuilder builder;
  if (!nlohmann::json::sax_parse(text, &builder)) throw data_error(name, builder.fault());
  return builder.take();
}

std::string text_at(const Value& mapping, std::string_view key) {
  const Value* value = mapping.find(key);
  return value != nullptr && value->is(Value::Kind::Text) ? value->text : std::string();
}

double number_at(const Value& mapping, std::string_view key) {
  const Value* value = mapping.find(key);
  if (value == nullptr) return kNoNumber;
  if (value->is(Value::Kind::Integer)) return static_cast<double>(value->integer);
  return value->is(Value::Kind::Number) ? value->number : kNoNumber;
}

Value load_json(const std::filesystem::path& path) {
  return parse_json(read_file(path, kLargestJsonFile), path.string());
}

}  // namespace pipewright
