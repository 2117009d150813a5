// SPDX-License-Identifier: Apache-2.0
// `pipewright list`: prints the parts from which an experiment can be made.
#include <algorithm>

#include "core/base/error.h"
#include "core/simulation/shipped_hardware.h"
#include "core/system/terminal.h"
#include "tools/command.h"
#include "tools/part_kinds.h"

namespace pipewright {
namespace {

void print_kind(const PartKind& kind) {
  std::size_t width = 0;
  for (const std::string& name : kind.names()) width = std::max(width, name.size());
  for (const std::string& name : kind.names())
    print("  %-*s  %s\n", static_cast<int>(width), name.c_str(), kind.summary(name).c_str());
}

/// The descriptions of hardware that come with the program.
void print_hardware() {
  const std::vector<ShippedHardware> all = shipped_hardware();
  std::size_t width = 0;
  for (const ShippedHardware& each : all) width = std::max(width, each.name.size());
  for (const ShippedHardware& each : all)
    print("  %-*s  %s\n", static_cast<int>(width), each.name.c_str(), each.summary.c_str());
}

int run_list(const std::vector<std::string>& arguments) {
  CommandLine line(kList,
                   "Names the parts an experiment can be made of, with one line about each.");
  line.positional("KIND",
                  "schemes, models, datasets, codecs, optimizers, losses, probes or hardware; "
                  "default: all",
                  0, 1);
  line.plugins();
  if (!line.parse(arguments)) return 0;
  const std::string wanted = line.text("KIND");
  std::vector<std::string> known;
  bool found = false;
  for (const PartKind& kind : part_kinds()) {
    known.push_back(kind.plural);
    if (!wanted.empty() && wanted != kind.plural && wanted != kind.name) continue;
    if (wanted.empty()) print("%s%s\n", found ? "\n" : "", kind.plural.c_str());
    print_kind(kind);
    found = true;
  }
  known.emplace_back("hardware");
  if (wanted.empty()) print("\nhardware\n");
  if (wanted.empty() || wanted == known.back()) {
    print_hardware();
    found = true;
  }
  if (!found)
    throw Error(ErrorKind::Experiment,
                concat("there are no parts called '", wanted, "'", suggestion(wanted, known)));
  return 0;
}

}  // namespace

const Command kList{"list",
                    "list [schemes | models | datasets | codecs | optimizers | losses | hardware]",
                    "the parts an experiment can be made of", run_list};

}  // namespace pipewright
