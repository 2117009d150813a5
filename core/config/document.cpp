// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <optional>

#include "core/base/wording.h"
#include "core/config/component_name.h"
#include "core/config/experiment_keys.h"
#include "core/config/merge.h"
#include "core/config/yaml_file.h"
#include "core/system/file.h"
#include "core/system/given_files.h"

namespace pipewright {
namespace {

namespace fs = std::filesystem;

/// A document merged with all files that it extends, and the profiles of these files.
struct Chain {
  Value document = Value::mapping();
  std::vector<DroppedOption> dropped;
  std::map<std::string, std::vector<Value>> profiles;  // name → profiles, base files first
};

/// Adds the options of `base` that are lost because `over` gives a section of the same part anew.
void collect_dropped(const Value& base, const Value& over, const std::string& around,
                     std::vector<DroppedOption>& dropped) {
  if (!base.is(Value::Kind::Mapping) || !over.is(Value::Kind::Mapping)) return;
  const Value* const name = over.find("name");
  const Value* const before = base.find("name");
  const bool replaces = !around.empty() && name != nullptr;
  if (replaces && before != nullptr && *before != *name) return;
  for (const auto& [key, value] : base.fields) {
    const std::string dotted = concat(around, around.empty() ? "" : ".", key);
    const Value* const again = over.find(key);
    if (again != nullptr)
      collect_dropped(value, *again, dotted, dropped);
    else if (replaces)
      dropped.push_back({dotted, value, over.place});
  }
}

/// Reads a file, and the files that it extends, into a chain. A file that extends itself, directly
/// or through others, is a problem.
class ChainReader {
 public:
  ChainReader(Problems& problems, Problems& faults) : problems_(problems), faults_(faults) {}

  /// `named`: the user named the file on the command line, so messages may quote it. A file that
  /// another file extends is quoted only if it is an experiment.
  void read(const fs::path& file, bool named, Chain& chain);

 private:
  /// Records that the file is not an experiment, without quoting its text.
  void refuse(const fs::path& file, const Value& document);
  void read_base(const fs::path& file, const Value& extends, Chain& chain);
  void collect_profiles(const Value& profiles, Chain& chain);

  Problems& problems_;          // faults that end the reading
  Problems& faults_;            // faults after which reading goes on
  std::vector<fs::path> read_;  // canonical paths of the files read so far
};

void ChainReader::read(const fs::path& file, bool named, Chain& chain) {
  Problems faults;
  const std::string text = named ? std::string() : read_yaml_file(file);
  std::optional<Value> read = named || trimmed(text).empty()
                                  ? load_yaml(file, faults)
                                  : parse_if_experiment(text, file.string(), faults);
  if (!read) return refuse(file, Value::of(text));
  Value& document = *read;
  if (!is_experiment(document, named)) return refuse(file, document);
  faults_.add(faults);
  remember_given_file(file);
  std::error_code ignored;
  read_.push_back(fs::weakly_canonical(file, ignored));
  if (const Value* extends = document.find("extends")) read_base(file, *extends, chain);
  if (const Value* profiles = document.find("profiles")) collect_profiles(*profiles, chain);
  std::erase_if(document.fields, [](const auto& field) {
    return field.first == "extends" || field.first == "profiles";
  });
  collect_dropped(chain.document, document, "", chain.dropped);
  chain.document = merged_keys(std::move(chain.document), document);
}

void ChainReader::refuse(const fs::path& file, const Value& document) {
  const bool colon = document.is(Value::Kind::Text) && looks_like_experiment(document.text);
  const std::string found = document.is(Value::Kind::Null)      ? "the file is empty"
                            : document.is(Value::Kind::Mapping) ? "no key of the file is an option"
                            : document.is(Value::Kind::Text)    ? "the file is no experiment"
                                                                : "the file is " + document.shown();
  problems_.add(document.place.line > 0 ? document.place : Place{file.string(), 1, 1},
                concat(found, "; expected options such as 'model: {name: mlp}'",
                       colon ? " (with a space after ':')" : ""));
}

void ChainReader::read_base(const fs::path& file, const Value& extends, Chain& chain) {
  if (!extends.is(Value::Kind::Text) || extends.text.empty()) {
    problems_.add(extends.place,
                  concat("extends is ", extends.shown(), "; expected the path of one file"));
    return;
  }
  const bool home = extends.text.starts_with("~");
  const fs::path base = home ? resolved_path(extends.text, ".")
                             : (file.parent_path() / extends.text).lexically_normal();
  std::error_code ignored;
  const fs::path canonical = fs::weakly_canonical(base, ignored);
  if (std::ranges::count(read_, canonical) > 0) {
    problems_.add(extends.place, concat("extends '", extends.text, "' closes a circle: ",
                                        base.string(), " extends this file"));
  } else if (!fs::exists(base, ignored)) {
    problems_.add(extends.place,
                  concat("extends '", extends.text, "', but there is no file ", base.string()));
  } else {
    read(base, false, chain);
  }
}

void ChainReader::collect_profiles(const Value& profiles, Chain& chain) {
  if (profiles.is(Value::Kind::Null)) return;
  if (!profiles.is(Value::Kind::Mapping)) {
    problems_.add(profiles.place, concat("profiles is ", profiles.shown(),
                                         "; expected a mapping of names to options"));
    return;
  }
  for (const auto& [name, profile] : profiles.fields) {
    if (profile.is(Value::Kind::Mapping) || profile.is(Value::Kind::Null))
      chain.profiles[name].push_back(profile);
    else
      problems_.add(profile.place, concat("profiles.", name, " is ", profile.shown(),
                                          "; expected a mapping of options"));
  }
}

/// Whether the key chooses the files to read, so that `--set` comes too late to change it.
bool chooses_files(const std::string& dotted) {
  const std::string first = split(dotted, '.').front();
  return first == "extends" || first == "profiles";
}

void set(Value& document, const std::string& key, const Value& value, Problems& problems) {
  if (chooses_files(key))
    problems.add(value.key_place(), concat("'", key,
                                           "' cannot be set here; write it at the top level of an "
                                           "experiment file"));
  else
    set_path(document, key, value, problems);
}

std::vector<std::string> names_of(const Chain& chain) {
  std::vector<std::string> names;
  for (const auto& [name, overrides] : chain.profiles) names.push_back(name);
  return names;
}

void apply_profile(const std::string& name, Chain& chain, Problems& problems) {
  const auto found = chain.profiles.find(name);
  if (found == chain.profiles.end()) {
    const std::vector<std::string> names = names_of(chain);
    const std::string hint = names.empty() ? "; the file has none" : suggestion(name, names);
    problems.add({"--profile", 0, 0}, concat("unknown profile '", name, "'", hint));
    return;
  }
  for (const Value& overrides : found->second)
    for (const auto& [key, value] : overrides.fields) set(chain.document, key, value, problems);
}

void apply_set(const std::string& text, Value& document, Problems& problems) {
  constexpr std::size_t kLongestKey = 500;
  const std::size_t equals = text.find('=');
  const std::string key(trimmed(std::string_view(text).substr(0, equals)));
  if (equals == std::string::npos || key.empty()) {
    problems.add({"--set", 0, 0}, concat("the argument is ", Value::of(text).shown(),
                                         "; expected KEY=VALUE, such as train.epochs=3"));
    return;
  }
  if (key.size() > kLongestKey) {
    problems.add({"--set", 0, 0}, concat("a key has ", counted(key.size(), "byte"),
                                         "; expected names joined by dots, such as "
                                         "'pipeline.stages'"));
    return;
  }
  try {
    set(document, key, parse_scalar(std::string_view(text).substr(equals + 1), "--set " + key),
        problems);
  } catch (const Error& error) {
    // Several problems of one value are the lines of one error, each with its place.
    const std::string prefix = concat("--set ", key, ": ");
    for (const std::string& line : split(error.message(), '\n'))
      problems.add({"--set " + key, 0, 0},
                   line.starts_with(prefix) ? line.substr(prefix.size()) : line);
  }
}

}  // namespace

Composition composition_of(const fs::path& file) {
  Problems problems, faults;
  Chain chain;
  ChainReader(problems, faults).read(file, true, chain);
  problems.throw_if_any();
  std::erase_if(chain.dropped, [&](const DroppedOption& each) {
    return chain.document.find_path(each.key) != nullptr;
  });
  return {.profiles = names_of(chain), .dropped = std::move(chain.dropped)};
}

Value load_document(const fs::path& file, const std::string& profile,
                    const std::vector<std::string>& sets) {
  Problems faults;
  Value document = load_document(file, profile, sets, faults);
  faults.throw_if_any();
  return document;
}

Value load_document(const fs::path& file, const std::string& profile,
                    const std::vector<std::string>& sets, Problems& faults) {
  Problems problems;
  Chain chain;
  ChainReader(problems, faults).read(file, true, chain);
  problems.add(problems.empty() ? Problems() : faults);
  problems.throw_if_any();
  if (!profile.empty()) apply_profile(profile, chain, problems);
  for (const std::string& text : sets) apply_set(text, chain.document, problems);
  problems.throw_if_any();
  if (const Value* given = chain.document.find("name")) {
    if (given->is(Value::Kind::Text)) check_component_name(*given, "name", faults);
  } else {
    Value name = Value::of(component_name_of(file.stem().string()));
    name.place = {file.string(), 1, 1};
    chain.document.fields.emplace(chain.document.fields.begin(), "name", std::move(name));
  }
  return chain.document;
}

}  // namespace pipewright
