// SPDX-License-Identifier: Apache-2.0
/// A YAML document as a tree of values, each with its place in the file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/error.h"

namespace pipewright {

/// Where a value was written: file (or "--set"), line and column from 1; line 0 = no line.
struct Place {
  std::string file;
  int line = 0;
  int column = 0;
  std::string text() const;  ///< "experiment.yaml:12:5", "--set", or ""
};

/// One node. Fields not of its kind are empty. Copies are deep; equality ignores places, spellings
/// and the order of a mapping's keys, but 1 and 1.0 differ.
struct Value {
  enum class Kind : std::uint8_t { Null, Flag, Integer, Number, Text, Sequence, Mapping };

  Kind kind = Kind::Null;
  bool flag = false;
  std::int64_t integer = 0;
  double number = 0;
  std::string text;          ///< the text; for other scalars their spelling
  std::vector<Value> items;  ///< the items of a Sequence
  std::vector<std::pair<std::string, Value>> fields;  ///< a Mapping, in the file's order
  bool refused = false;                               ///< a problem with it has been recorded
  Place place;
  int key_line = 0, key_column = 0;  ///< place of its key, if it has one

  static Value of(bool flag);
  static Value of(std::int64_t integer);
  static Value of(int integer) { return of(std::int64_t{integer}); }
  static Value of(double number);
  static Value of(std::string text);
  static Value of(const char* text) { return of(std::string(text)); }
  static Value sequence(std::vector<Value> items = {});
  static Value mapping();

  bool is(Kind k) const { return kind == k; }
  const Value* find(std::string_view key) const;  ///< nullptr when absent or not a mapping
  Value* find(std::string_view key);
  /// The field of that key; an absent one is added at the end. Requires a mapping.
  Value& at_or_add(const std::string& key);
  /// The value at a dotted path such as "pipeline.stages", or nullptr. Numbers are indices into
  /// sequences.
  const Value* find_path(std::string_view dotted) const;
  /// The place of this value's key; `place` when it has none.
  Place key_place() const;
  /// "a mapping", "the text 'abc'", "the number 0.5": for messages.
  std::string described() const;
  /// As described(), but for messages of the form "… is X": "a mapping", "'abc'", "0.5", "empty".
  /// Long texts are cut.
  std::string shown() const;

  bool operator==(const Value& other) const;
};

/// All errors of a file, to be reported together: in order of place, each once. The first hundred
/// are kept; of the others only the number is reported.
class Problems {
 public:
  /// Adds a problem. `message` is made printable, as one line.
  void add(const Place& place, const std::string& message, ErrorKind kind = ErrorKind::Experiment);
  void add(const Problems& others);
  bool empty() const { return errors_.empty(); }
  const std::vector<Error>& errors() const { return errors_; }
  /// Throws one Error whose text has one line per problem, in order of place; its kind is the
  /// first problem's. Does nothing when there is none.
  void throw_if_any() const;

 private:
  std::vector<Error> errors_;
  std::vector<Place> places_;  // places of errors_, in the same order
  std::size_t dropped_ = 0;
};

/// The most levels of nested sequences and mappings, and the most steps in a dotted key.
inline constexpr std::size_t kDeepestNesting = 100;

/// Parses one strict YAML document (JSON is YAML). Refused, each with its place and the spelling
/// that is meant: duplicate keys, `<<`, anchors that would grow the document beyond 100,000 nodes,
/// tags, more than one document, `yes/no/on/off/True/…`, `010`, `0x10`, `1_000`, `.5`, keys that
/// are not text, nesting deeper than kDeepestNesting. `1e-3` is a number; quoted scalars are always
/// text. Throws Error{Experiment} (all of the file's faults together). `name` is used in places.
Value parse_yaml(std::string_view text, const std::string& name);
/// As above, but faults after which the rest of the document can still be read (refused spellings,
/// keys given twice) go to `faults`, so that they can be reported together with other problems. A
/// refused value is Null and has `refused` set. Throws only for faults that end the reading.
Value parse_yaml(std::string_view text, const std::string& name, Problems& faults);

/// Reads and parses a file of at most 2 MiB. Throws Error{Experiment} if it is missing, larger, or
/// not a regular file, Error{Data} if it cannot be read.
Value load_yaml(const std::filesystem::path& path);
Value load_yaml(const std::filesystem::path& path, Problems& faults);

/// Parses the value of `--set key=value` as YAML ("[1, 2]" and "{name: x}" too), except that an
/// empty value is the empty text. Places are just `name`, without a line.
Value parse_scalar(std::string_view text, const std::string& name);

/// Text that parse_yaml reads back as an equal value: block style for mappings, flow style for
/// short sequences; texts are quoted where a plain one would be read as something else.
std::string to_yaml(const Value& value);
/// Compact JSON.
std::string to_json(const Value& value);
/// FNV-1a of the canonical JSON (keys sorted), as 16 hex digits: the config digest.
std::string digest(const Value& value);

}  // namespace pipewright
