// SPDX-License-Identifier: Apache-2.0
// `pipewright list`: prints the parts from which an experiment can be made.
#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/simulation/shipped_hardware.h"
#include "core/system/terminal.h"
#include "tools/command.h"
#include "tools/part_kinds.h"

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

int run_list(const std::vector<std::string>& arguments) {
  CommandLine line(kList,
                   "Names the parts an experiment can be made of, with one line about each.");
  line.positional("KIND",
                  "schemes, models, datasets, codecs, optimizers, losses, gradient_rules, probes, "
                  "metrics or hardware; default: all",
                  0, 1);
  line.plugins();
  if (!line.parse(arguments)) return 0;
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
  if (!wanted.empty())
    throw Error(ErrorKind::Experiment,
                concat("there are no parts called '", wanted, "'", suggestion(wanted, known)));
  return 0;
}

}  // namespace

const Command kList{"list",
                    "list [schemes | models | datasets | codecs | optimizers | losses | hardware]",
                    "the parts an experiment can be made of", run_list};

}  // namespace pipewright
