// SPDX-License-Identifier: Apache-2.0
/// Options that describe themselves. A part reads each option once, where it uses it; the same
/// line gives parsing, range check, default, help, the JSON Schema and the resolved file.
///
///   explicit SpecTrain(Options& options)
///       : version_(options.choice("version", {1, 2}, 1, "Prediction rule: …")) {}
///
/// Readers never throw on a bad value: they record the problem and return the fallback, so that all
/// errors of a file are reported together. Only one thread may use an object.
#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/value.h"

namespace pipewright {

/// What an option is: enough for help, reference pages and the JSON Schema.
struct OptionInfo {
  enum class Type : std::uint8_t { Flag, Integer, Number, Text, Path, Choice, List, Any, Section };
  std::string name;
  Type type = Type::Any;
  std::string help;
  bool required = false;
  Value fallback;                     ///< Null when required
  std::vector<Value> choices;         ///< the values of a Choice
  std::optional<double> least, most;  ///< inclusive bounds of numbers, and of List elements
  std::vector<OptionInfo> section;    ///< the options of a Section
  Type element = Type::Any;           ///< type of the elements of a List: Integer or Number
};

/// Inclusive bounds of a numeric option.
struct Range {
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
};
inline constexpr Range kPositive{1, std::numeric_limits<double>::infinity()};
inline constexpr Range kNotNegative{0, std::numeric_limits<double>::infinity()};
inline constexpr Range kFraction{0, 1};

class Options {
 public:
  /// Reads from `mapping` (nullptr or Null: nothing was given; anything but a mapping is a
  /// problem). `path` is the section's name in messages ("scheme"). `mapping` and `problems` must
  /// outlive this object.
  Options(const Value* mapping, std::string path, Problems& problems);

  bool flag(const std::string& name, bool fallback, const std::string& help);
  std::int64_t integer(const std::string& name, std::int64_t fallback, const std::string& help,
                       Range range = {});
  double number(const std::string& name, double fallback, const std::string& help,
                Range range = {});
  std::string text(const std::string& name, const std::string& fallback, const std::string& help);
  std::string choice(const std::string& name, const std::vector<std::string>& choices,
                     const std::string& fallback, const std::string& help);
  int choice(const std::string& name, std::initializer_list<int> choices, int fallback,
             const std::string& help);
  /// A choice of a registered part, such as a scheme. `explain` says what an unknown name means
  /// elsewhere, "" where it has none; the problem of a name that is nearly none of the parts then
  /// says that a part of a plugin needs --plugin.
  std::string part(const std::string& name, const std::vector<std::string>& parts,
                   const std::string& fallback, const std::string& help,
                   std::string (*explain)(std::string_view) = nullptr);
  std::vector<std::int64_t> integers(const std::string& name,
                                     const std::vector<std::int64_t>& fallback,
                                     const std::string& help, Range range = {});
  std::vector<double> numbers(const std::string& name, const std::vector<double>& fallback,
                              const std::string& help, Range range = {});
  /// Reads a path and makes it absolute: relative to the folder of the file that names it, or to
  /// the current folder for `--set` and for the fallback; "~/" is the home folder; "" stays empty.
  /// The resolved file has the absolute path.
  std::filesystem::path path(const std::string& name, const std::string& fallback,
                             const std::string& help);
  /// As path(), but a missing or empty path is a problem.
  std::filesystem::path required_path(const std::string& name, const std::string& help);
  /// Reads a value of any shape, which the caller checks (problem() reports); `fallback` if absent.
  Value any(const std::string& name, const Value& fallback, const std::string& help);
  /// As text(), but a missing text is a problem.
  std::string required_text(const std::string& name, const std::string& help);
  /// A nested mapping, to be read with the Options returned. Call its finish(), which also adds its
  /// options to ours. Until then this object must not be moved.
  Options section(const std::string& name, const std::string& help);

  /// A list of nested mappings, [] if absent; each is read with its Options, as section(). What is
  /// no mapping is a problem and left out.
  std::vector<Options> sections(const std::string& name, const std::string& help);

  bool given(const std::string& name) const;   ///< written in the file, whatever its value
  Place where(const std::string& name) const;  ///< place of the value if given, else of the section
  /// Records "where: path.name is 3; …" for such a predicate, "where: path.name: message" for else.
  void problem(const std::string& name, const std::string& message);
  /// Records "place: message": a problem within a value that any() has read.
  void problem_at(const Place& place, const std::string& message);
  /// Records what was found in such a value with Options of its own.
  void add(const Problems& others);
  /// Records a problem for each key that was not read; those of a section when the root is
  /// finished. Records none if `name` chooses an unknown part, because its options are unknown,
  /// too. `owners` says which other parts have an option of that name, "" for none.
  void finish(std::string (*owners)(const std::string&) = nullptr);

  const std::vector<OptionInfo>& declared() const { return declared_; }
  /// Every option read so far with the value in force, as the resolved file has it.
  Value resolved() const { return resolved_; }

 private:
  struct UnknownKey {
    Place place;
    std::string key, name;  // as written, and behind its section
    std::string meaning;    // what it surely means; "" if that is unknown
    std::string guess;      // what stands behind the message if no section has the option
  };
  Options(Options& parent, const std::string& name, const Value* mapping);
  void add_to_parent();
  std::filesystem::path read_path(const OptionInfo& info);

  std::string full_name(const std::string& name) const;
  const OptionInfo& declare(OptionInfo info);
  const Value* find(const std::string& name) const;
  void accept(const std::string& name, Value value);
  void refuse(const OptionInfo& info, const Value& value, const std::string& hint = {});
  template <class Read>
  auto read(OptionInfo info, const Read& convert) -> decltype(convert(Value()));
  template <class Read>
  auto read_list(OptionInfo info, const Read& convert)
      -> std::optional<std::vector<typename decltype(convert(Value()))::value_type>>;

  const Value* mapping_;
  std::string path_;
  Place place_;  // place of the mapping, or of the nearest given one around it
  Problems* problems_;
  Options* parent_ = nullptr;
  std::vector<UnknownKey> unknown_;
  std::vector<OptionInfo> declared_;
  Value resolved_ = Value::mapping();
};

}  // namespace pipewright
