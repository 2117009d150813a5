// SPDX-License-Identifier: Apache-2.0
// `pipewright list`: prints the parts from which an experiment can be made.
#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/exports/run_choice.h"
#include "core/simulation/shipped_hardware.h"
#include "core/sweep/sweep_plan.h"
#include "core/system/terminal.h"
#include "tools/command.h"
#include "tools/part_kinds.h"
#include "tools/report/sources.h"
#include "tools/results.h"

namespace pipewright {
namespace {

/// Parts that `list` names together: each with a line about it.
struct Group {
  std::string name, plural;  ///< either is accepted on the command line
  std::vector<std::pair<std::string, std::string>> parts;
};

Group group_of(const PartKind& kind) {
  Group group{kind.name, kind.plural, {}};
  for (const std::string& name : kind.names()) group.parts.emplace_back(name, kind.summary(name));
  return group;
}

/// The descriptions of hardware that come with the program.
Group hardware() {
  Group group{"hardware", "hardware", {}};
  for (const ShippedHardware& each : shipped_hardware())
    group.parts.emplace_back(each.name, each.summary);
  return group;
}

void print_parts(const Group& group) {
  std::size_t width = 0;
  for (const auto& [name, summary] : group.parts) width = std::max(width, name.size());
  for (const auto& [name, summary] : group.parts)
    print("  %-*s  %s\n", static_cast<int>(width), name.c_str(), summary.c_str());
}

/// The runs of a folder, or those that an experiment's file has now.
std::vector<RunRecord> runs_of(const std::filesystem::path& source, const CommandLine& line) {
  std::error_code none;
  if (std::filesystem::is_directory(source, none)) {
    line.refuse_given({"set", "profile", "out"},
                      "needs the experiment's file in the place of a folder of its runs");
    return runs_of_folder(source);
  }
  const ExperimentArguments given{.file = source,
                                  .profile = line.text("profile"),
                                  .sets = line.texts("set"),
                                  .out = line.text("out")};
  const Value document = given.document();
  return sweep_records(document, results_folder(given, document));
}

/// These runs in the words that choose each, or the folder of the one that --where does.
int list_runs(const CommandLine& line) {
  const std::filesystem::path folder = line.text("KIND");
  if (line.given("where")) {
    print("%s\n", run_in(folder, line).c_str());
    return 0;
  }
  const std::vector<RunRecord> runs = runs_of(folder, line);
  const std::vector<std::string> settings = distinguishing_settings(runs);
  std::size_t width = 0;
  for (const RunRecord& run : runs) width = std::max(width, run.folder.string().size());
  for (std::size_t i = 0; i < runs.size(); ++i)
    print("  %-*s  %-11s  %s\n", static_cast<int>(width), runs[i].folder.c_str(),
          runs[i].state.c_str(), settings[i].c_str());
  return 0;
}

int run_list(const std::vector<std::string>& arguments) {
  CommandLine line(kList,
                   "Names the parts an experiment can be made of, with one line about each. Of a "
                   "folder, or of an experiment's file, it names the runs, their states and the "
                   "settings in which they differ.");
  line.positional(
      "KIND",
      "schemes, models, datasets, codecs, optimizers, losses, gradient_rules, probes, "
      "metrics or hardware, or the folder of a sweep, or an experiment's file; default: all "
      "parts",
      0, 1);
  line.option("out", "DIR", "the folder of the file's results; default: runs/<name>");
  line.list("set", "KEY=VALUE", "as in the sweep of the file");
  line.option("profile", "P", "as in the sweep of the file");
  line.where();
  line.plugins();
  if (!line.parse(arguments)) return 0;
  if (line.given("where")) return list_runs(line);
  std::vector<Group> groups;
  for (const PartKind& kind : part_kinds()) groups.push_back(group_of(kind));
  groups.push_back(hardware());
  const std::string wanted = line.text("KIND");
  std::vector<std::string> known;
  for (const Group& group : groups) {
    known.push_back(group.plural);
    if (wanted.empty())
      print("%s%s\n", known.size() > 1 ? "\n" : "", group.plural.c_str());
    else if (wanted != group.plural && wanted != group.name)
      continue;
    print_parts(group);
    if (!wanted.empty()) return 0;
  }
  std::error_code none;
  if (std::filesystem::exists(wanted, none)) return list_runs(line);
  if (!wanted.empty())
    throw Error(ErrorKind::Experiment,
                concat("there are no parts called '", wanted, "'", suggestion(wanted, known)));
  return 0;
}

}  // namespace

const Command kList{
    "list",
    "list [schemes | models | datasets | codecs | optimizers | losses | hardware | DIR | FILE]",
    "the parts an experiment can be made of, or the runs of a folder or file", run_list};

}  // namespace pipewright
