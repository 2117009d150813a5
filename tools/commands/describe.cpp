// SPDX-License-Identifier: Apache-2.0
// `pipewright describe`: explains a part with its options and an example line of YAML.
#include <algorithm>
#include <cstdlib>

#include "core/base/error.h"
#include "core/base/wording.h"
#include "core/config/schema.h"
#include "core/experiment/catalogue.h"
#include "core/experiment/experiment.h"
#include "core/probes/probe.h"
#include "core/reports/claims.h"
#include "core/simulation/shipped_hardware.h"
#include "core/system/file.h"
#include "core/system/terminal.h"
#include "tools/command.h"
#include "tools/part_kinds.h"
#include "tools/report_sections.h"

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

std::string scheme_remark(const std::string& name) {
  Problems problems;
  const Value nothing = Value::mapping();
  Options options(&nothing, "scheme", problems);
  return Registry<Scheme>::instance().find(name)->make(options)->remark();
}

/// A remark on the folder of a data set whose default is in "~/data"; "" for others.
std::string data_remark(const std::vector<OptionInfo>& options) {
  const bool there = std::ranges::any_of(
      options, [](const OptionInfo& info) { return info.fallback.text.starts_with("~/data"); });
  if (!there) return {};
  const std::filesystem::path folder = resolved_path("~/data", ".");
  return concat("~/data is ", folder.string(),
                std::getenv("PIPEWRIGHT_DATA") != nullptr
                    ? ", as PIPEWRIGHT_DATA says."
                    : "; the variable PIPEWRIGHT_DATA names another folder in its place.");
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

void print_page(const std::string& title, const std::string& summary, const std::string& remark,
                const std::vector<OptionInfo>& options, const std::string& example,
                const std::string& quantities = {}) {
  print("%s\n  %s\n", title.c_str(), summary.c_str());
  if (!remark.empty()) print("\nNote: %s\n", remark.c_str());
  print("\nOptions\n%s",
        options.empty() ? "  There are none.\n" : describe_options(options).c_str());
  print("%s\nExample\n  %s\n", quantities.c_str(), example.c_str());
}

void describe_part(const PartKind& kind, const std::string& name) {
  const std::vector<std::string> names = kind.names();
  if (name.empty())
    throw Error(ErrorKind::Experiment,
                concat("NAME is missing: which ", kind.name, "? known: ", join(names, ", ")));
  if (std::ranges::count(names, name) == 0)
    throw Error(ErrorKind::Experiment, concat("there is no ", kind.name, " '", name, "'",
                                              suggestion(name, names), plugin_hint(name, names)));
  const bool has_options = kind.name != "metric";
  const std::vector<OptionInfo> options =
      has_options ? part_options(kind.name, name) : std::vector<OptionInfo>();
  std::string example = concat(kind.name, ": ", example_line(name, options));
  if (kind.name == "codec")
    example = concat("pipeline: {compression: ", example_line(name, options), "}");
  if (!has_options) example = concat("metrics: [", name, "]");
  if (kind.name == "probe") example = concat("probes: [", example_line(name, options), "]");
  print_page(concat(kind.name, " ", name), kind.summary(name),
             kind.name == "scheme" ? scheme_remark(name) : data_remark(options), options, example,
             kind.name == "probe" ? quantities_of(name) : "");
}

/// Commands for a user who named a part without its kind.
std::string commands_for(const std::string& name) {
  std::vector<std::string> commands;
  for (const PartKind& kind : part_kinds())
    if (std::ranges::count(kind.names(), name) > 0)
      commands.push_back(concat("`pipewright describe ", kind.name, " ", name, "`"));
  return join(commands, " or ");
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

int run_describe(const std::vector<std::string>& arguments) {
  CommandLine line(kDescribe,
                   "Says what a part is, what its options mean and how it is written in YAML.");
  line.positional(
      "KIND",
      "scheme, model, dataset, codec, optimizer, loss, probe, metric or hardware; or a section of "
      "the experiment file: pipeline, train, loader, output, lr_schedule, translation, table, "
      "plot, "
      "claims",
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
  const std::string commands = commands_for(wanted);
  throw Error(ErrorKind::Experiment,
              concat("there is nothing called '", wanted, "'",
                     commands.empty() ? suggestion(wanted, known) : concat("; try ", commands)));
}

}  // namespace

const Command kDescribe{"describe", "describe KIND [NAME]",
                        "what a part or section is, and its options", run_describe};

}  // namespace pipewright
