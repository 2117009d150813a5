// SPDX-License-Identifier: Apache-2.0
// `pipewright describe`: explains a part with its options and an example line of YAML.
#include <algorithm>
#include <memory>

#include "core/base/error.h"
#include "core/base/wording.h"
#include "core/config/experiment_keys.h"
#include "core/config/schema.h"
#include "core/experiment/catalogue.h"
#include "core/experiment/experiment.h"
#include "core/probes/probe.h"
#include "core/schedule/other_names.h"
#include "core/simulation/shipped_hardware.h"
#include "core/system/file.h"
#include "core/system/terminal.h"
#include "core/tables/claims.h"
#include "tools/command.h"
#include "tools/composition_sections.h"
#include "tools/part_kinds.h"
#include "tools/table_sections.h"

namespace pipewright {
namespace {

/// A value in YAML's flow style, as within braces.
std::string flow_text(const Value& value) {
  std::string text = to_yaml(value);
  while (text.ends_with('\n')) text.pop_back();
  return text.find('\n') == std::string::npos ? text : to_json(value);
}

/// An example with the first options and their defaults: "{name: spectrain, version: 1, s_mode:
/// constant}".
std::string example_line(const std::string& name, const std::vector<OptionInfo>& options) {
  constexpr std::size_t kMost = 4;
  std::vector<std::string> fields;
  if (!name.empty()) fields.push_back(concat("name: ", name));
  for (const OptionInfo& info : options) {
    if (info.required && info.type == OptionInfo::Type::Path)
      fields.push_back(concat(info.name, ": path/to/", info.name));
    const Value& value = info.fallback;
    const bool told = value.is(Value::Kind::Flag) || value.is(Value::Kind::Integer) ||
                      value.is(Value::Kind::Number) || !value.text.empty() || !value.items.empty();
    const bool named = info.name == "name" && !name.empty();
    if (!told || named || info.type == OptionInfo::Type::Section) continue;
    if (fields.size() < kMost) fields.push_back(concat(info.name, ": ", flow_text(info.fallback)));
  }
  return concat("{", join(fields, ", "), "}");
}

/// Claims are a list, and none of their options has a default that says anything.
constexpr const char* kClaimsExample =
    "claims: [{say: PipeDream learns less than GPipe, less: [{scheme.name: pipedream}, "
    "{scheme.name: gpipe}]}]";

/// The part with its default options.
template <class Part>
std::unique_ptr<Part> default_part(const std::string& name) {
  Problems problems;
  const Value nothing = Value::mapping();
  Options options(&nothing, "part", problems);
  return Registry<Part>::instance().find(name)->make(options);
}

/// What an experiment with this scheme needs besides: those whose replicas share workers need two,
/// of two stages or more.
std::string shape_for(const std::string& scheme) {
  for (const int stages : {2, 4})
    if (!default_part<Scheme>(scheme)->replica_placement(stages, 2).empty())
      return concat("\n  pipeline: {stages: ", stages, ", replicas: 2}");
  return {};
}

/// A remark on the folder of a data set whose default is in "~/data"; "" for others.
std::string data_remark(const std::vector<OptionInfo>& options) {
  const bool there = std::ranges::any_of(
      options, [](const OptionInfo& info) { return info.fallback.text.starts_with("~/data"); });
  if (!there) return {};
  std::string folder;
  try {
    folder = resolved_path("~/data", ".").string();
  } catch (const Error& error) {
    return concat("~/data is unknown: ", error.what());
  }
  return concat("~/data is ", folder,
                !environment_value("PIPEWRIGHT_DATA").empty()
                    ? ", as PIPEWRIGHT_DATA says."
                    : "; the variable PIPEWRIGHT_DATA names another folder in its place.");
}

std::string remark_on(const PartKind& kind, const std::string& name,
                      const std::vector<OptionInfo>& options) {
  if (kind.name == "scheme") return default_part<Scheme>(name)->remark();
  if (kind.name == "optimizer") return default_part<Optimizer>(name)->remark();
  if (kind.name == "gradient_rule") return default_part<GradientRule>(name)->remark();
  return data_remark(options);
}

/// What a probe writes into probes.csv.
std::string quantities_of(const std::string& name) {
  const Value nothing = Value::mapping();
  Problems problems;
  Options options(&nothing, "", problems);
  const auto probe = Registry<Probe>::instance().find(name)->make(options);
  std::string text = "\nQuantities\n";
  for (const Probe::Quantity& each : probe->quantities())
    text += concat("  ", each.name, "\n      ", each.meaning, "\n");
  return text;
}

/// What stands before the example of some kinds: what a probe measures, and what other projects
/// call a scheme.
std::string more_on(const PartKind& kind, const std::string& name) {
  if (kind.name == "probe") return quantities_of(name);
  const std::string names = kind.name == "scheme" ? other_names_of(name) : std::string();
  return names.empty() ? names : concat("\nElsewhere\n  ", names, "\n");
}

/// "; 'Schedule1F1B' of PyTorch is the scheme one_f_one_b here", of a name that another project
/// uses.
std::string elsewhere(const std::string& name) {
  const std::string explained = explain_other_name(name);
  return explained.empty() ? "" : concat("; ", explained);
}

/// The scheme that another project calls so; "" for none.
std::string scheme_elsewhere(const std::string& name) {
  const OtherName* const other = find_other_name(name);
  return other == nullptr ? std::string() : std::string(other->scheme);
}

void print_page(const std::string& title, const std::string& summary, const std::string& remark,
                const std::vector<OptionInfo>& options, const std::string& example,
                const std::string& more = {}) {
  print("%s\n  %s\n", title.c_str(), summary.c_str());
  if (!remark.empty()) print("\nNote: %s\n", remark.c_str());
  print("\nOptions\n%s",
        options.empty() ? "  There are none.\n" : describe_options(options).c_str());
  print("%s\nExample\n  %s\n", more.c_str(), example.c_str());
}

/// The top-level key of the experiment file that names parts of the kind, or null.
const OptionInfo* section_of(const PartKind& kind, const std::vector<OptionInfo>& options) {
  for (const std::string& name : {kind.name, kind.plural})
    if (const auto found = std::ranges::find(options, name, &OptionInfo::name);
        found != options.end())
      return &*found;
  return nullptr;
}

/// A kind of parts: what they are for, and one line about each.
void describe_kind(const PartKind& kind) {
  const std::vector<OptionInfo> options = experiment_options();
  const OptionInfo* const section = section_of(kind, options);
  print("%s\n", kind.plural.c_str());
  if (section != nullptr) print("  %s\n", section->help.c_str());
  print("\n");
  const std::vector<std::string> names = kind.names();
  std::size_t width = 0;
  for (const std::string& name : names) width = std::max(width, name.size());
  for (const std::string& name : names)
    print("  %-*s  %s\n", static_cast<int>(width), name.c_str(), kind.summary(name).c_str());
  print("\n`pipewright describe %s NAME` explains one.\n", kind.name.c_str());
}

void describe_part(const PartKind& kind, const std::string& name) {
  const std::vector<std::string> names = kind.names();
  if (name.empty()) return describe_kind(kind);
  const std::string other = kind.name == "scheme" ? scheme_elsewhere(name) : std::string();
  if (!other.empty() && std::ranges::count(names, name) == 0) {
    print("%s\n\n", explain_other_name(name).c_str());
    return describe_part(kind, other);
  }
  if (std::ranges::count(names, name) == 0) {
    const std::string explained = kind.name == "scheme" ? elsewhere(name) : std::string();
    throw Error(
        ErrorKind::Experiment,
        concat("there is no ", kind.name, " '", name, "'",
               explained.empty() ? suggestion(name, names) + plugin_hint(name, names) : explained));
  }
  const bool has_options = kind.name != "metric";
  const std::vector<OptionInfo> options =
      has_options ? part_options(kind.name, name) : std::vector<OptionInfo>();
  std::string example = concat(kind.name, ": ", example_line(name, options));
  if (kind.name == "scheme") example += shape_for(name);
  if (kind.name == "codec")
    example = concat("pipeline: {compression: ", example_line(name, options), "}");
  if (!has_options) example = concat("metrics: [", name, "]");
  if (kind.name == "gradient_rule")
    example = concat("gradient_rules: [", example_line(name, options), "]");
  if (kind.name == "probe") example = concat("probes: [", example_line(name, options), "]");
  print_page(concat(kind.name, " ", name), kind.summary(name), remark_on(kind, name, options),
             options, example, more_on(kind, name));
}

/// Describes the part that is called so, here or in another project, for a user who named no kind;
/// false if there is none. Throws Error{Experiment} with the commands where several kinds have one.
bool describe_part_called(const std::string& name) {
  std::vector<const PartKind*> found;
  for (const PartKind& kind : part_kinds())
    if (std::ranges::count(kind.names(), name) > 0 ||
        (kind.name == "scheme" && !scheme_elsewhere(name).empty()))
      found.push_back(&kind);
  if (found.size() > 1) {
    std::vector<std::string> commands;
    for (const PartKind* kind : found)
      commands.push_back(concat("`pipewright describe ", kind->name, " ", name, "`"));
    throw Error(ErrorKind::Experiment,
                concat("several parts are called '", name, "'; try ", join(commands, " or ")));
  }
  if (!found.empty()) describe_part(*found.front(), name);
  return !found.empty();
}

/// Prints the file of a machine that comes with the program: its comments say where figures are
/// from.
void describe_hardware(const std::string& name) {
  std::vector<std::string> names;
  for (const ShippedHardware& each : shipped_hardware()) names.push_back(each.name);
  if (std::ranges::count(names, name) == 0)
    throw Error(ErrorKind::Experiment,
                concat("there is no hardware '", name, "'", suggestion(name, names)));
  const std::filesystem::path file = hardware_file(name);
  print("hardware %s, %s\n\n%s", name.c_str(), file.c_str(), read_file(file).c_str());
}

/// The experiment file: each of its top-level keys with what it is.
void describe_experiment() {
  std::vector<OptionInfo> all = experiment_options();
  for (const CompositionSection& each : composition_sections()) all.push_back(each.info);
  for (const OptionInfo& each : table_sections()) all.push_back(each);
  print("experiment\n  A file of these keys, all of which may be left out.\n\n");
  for (const ExperimentKey& key : experiment_keys()) {
    const auto info = std::ranges::find(all, key.name, &OptionInfo::name);
    if (info != all.end()) print("  %-12s %s\n", key.name.c_str(), info->help.c_str());
  }
  print("\n`pipewright describe KEY` explains one.\n");
}

/// A key that has a page of its own though it is no section of options; false if it is none.
bool describe_key(const std::string& wanted) {
  if (wanted == "experiment") {
    describe_experiment();
    return true;
  }
  for (const auto& [info, example] : composition_sections())
    if (info.name == wanted) {
      print("%s\n  %s\n", info.name.c_str(), info.help.c_str());
      if (!info.section.empty()) print("\nOptions\n%s", describe_options(info.section).c_str());
      print("\nExample\n  %s\n", example.c_str());
      return true;
    }
  for (const OptionInfo& info : experiment_options())
    if (info.name == wanted && info.type != OptionInfo::Type::Section) {
      print("%s", describe_options({info}).c_str());
      return true;
    }
  return false;
}

/// Adds the options that are called so, with or without the sections around them, by dotted names.
void find_options(const std::vector<OptionInfo>& among, const std::string& around,
                  const std::string& wanted, std::vector<OptionInfo>& found) {
  for (OptionInfo info : among) {
    const std::string dotted = around + info.name;
    find_options(info.section, dotted + ".", wanted, found);
    if (!around.empty() && (wanted == info.name || wanted == dotted)) {
      info.name = dotted;
      found.push_back(std::move(info));
    }
  }
}

/// "; did you mean 'pipeline.microbatches'?" for the dotted name of an option; "" with none near.
std::string option_meant(const std::vector<OptionInfo>& among, const std::string& around,
                         const std::string& wanted) {
  std::vector<std::string> names;
  for (const OptionInfo& info : among) {
    const std::string dotted = around + info.name;
    if (wanted.starts_with(dotted + "."))
      if (const std::string inner = option_meant(info.section, dotted + ".", wanted);
          !inner.empty())
        return inner;
    if (!around.empty()) names.push_back(dotted);
  }
  return did_you_mean(wanted, names);
}

/// Describes the options within sections that are called so; false if there are none.
bool describe_option(const std::string& wanted) {
  std::vector<OptionInfo> found;
  find_options(plain_sections(), "", wanted, found);
  print("%s", describe_options(found).c_str());
  return !found.empty();
}

int run_describe(const std::vector<std::string>& arguments) {
  CommandLine line(kDescribe,
                   "Says what a part is, what its options mean and how it is written in YAML.");
  line.positional(
      "KIND",
      "scheme, model, dataset, codec, optimizer, loss, gradient_rule, probe, metric or hardware; "
      "or a section of the experiment file: pipeline, train, loader, output, lr_schedule, "
      "translation, sweep, profiles, extends, table, plot, claims and so on; `describe experiment` "
      "names all; or an option in one, such as train.evaluate",
      1, 1);
  line.positional("NAME", "the name of the part; `pipewright list` prints them all", 0, 1);
  line.plugins();
  if (!line.parse(arguments)) return 0;
  const std::string wanted = line.text("KIND"), name = line.text("NAME");
  std::vector<std::string> known;
  for (const PartKind& kind : part_kinds()) {
    known.push_back(kind.name);
    if (wanted != kind.name && wanted != kind.plural) continue;
    describe_part(kind, name);
    return 0;
  }
  for (const OptionInfo& info : plain_sections()) {
    if (info.type != OptionInfo::Type::Section) continue;
    known.push_back(info.name);
    if (wanted != info.name) continue;
    if (wanted == "hardware" && !name.empty()) {
      describe_hardware(name);
      return 0;
    }
    if (!name.empty())
      throw Error(ErrorKind::Experiment,
                  concat("'", wanted, "' is one section; nothing in it is called '", name, "'"));
    print_page(info.name, info.help, "", info.section,
               info.name == "claims" ? std::string(kClaimsExample)
                                     : concat(info.name, ": ", example_line("", info.section)));
    return 0;
  }
  if (name.empty() &&
      (describe_key(wanted) || describe_part_called(wanted) || describe_option(wanted)))
    return 0;
  for (const ExperimentKey& key : experiment_keys())
    if (std::ranges::count(known, key.name) == 0) known.push_back(key.name);
  std::string explained = elsewhere(wanted);
  if (explained.empty()) explained = option_meant(plain_sections(), "", wanted);
  throw Error(ErrorKind::Experiment,
              concat("there is nothing called '", wanted, "'",
                     explained.empty() ? suggestion(wanted, known) : explained));
}

}  // namespace

const Command kDescribe{"describe", "describe KIND [NAME]",
                        "what a part or section is, and its options", run_describe};

}  // namespace pipewright
