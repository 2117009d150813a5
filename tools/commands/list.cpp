// SPDX-License-Identifier: Apache-2.0
// `pipewright list`: prints the parts from which an experiment can be made.
#include <algorithm>

#include "core/base/error.h"
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

int run_list(const std::vector<std::string>& arguments) {
  CommandLine line(kList,
                   "Names the parts an experiment can be made of, with one line about each.");
  line.positional("KIND",
                  "schemes, models, datasets, codecs, optimizers, losses or probes; default: all",
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
  if (!found)
    throw Error(ErrorKind::Experiment,
                concat("there are no parts called '", wanted, "'", suggestion(wanted, known)));
  return 0;
}

}  // namespace

const Command kList{"list", "list [schemes | models | datasets | codecs | optimizers | losses]",
                    "the parts an experiment can be made of", run_list};

}  // namespace pipewright
