// SPDX-License-Identifier: Apache-2.0
#include "tools/composition_sections.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/config/experiment_keys.h"

namespace pipewright {
namespace {

OptionInfo option(const char* name, const Value& fallback, const char* help) {
  OptionInfo info;
  info.name = name;
  info.fallback = fallback;
  info.help = help;
  return info;
}

OptionInfo section(const char* name, const char* help, std::vector<OptionInfo> options) {
  OptionInfo info = option(name, {}, help);
  info.type = OptionInfo::Type::Section;
  info.section = std::move(options);
  return info;
}

CompositionSection sweep() {
  return {
      section("sweep",
              "Many runs of one file: points × zip × grid. A part that is left out counts as "
              "one empty combination. `check FILE` lists the runs, `sweep FILE` performs them.",
              {option("points", Value::sequence(),
                      "A list of runs that are written out: each a mapping of dotted keys or "
                      "whole sections, and, if wanted, a label that names it in tables."),
               option("zip", Value::mapping(),
                      "Dotted keys with lists of equal length, which advance together: "
                      "{pipeline.stages: [2, 4], pipeline.microbatches: [4, 8]}."),
               option("grid", Value::mapping(),
                      "Dotted keys with lists, of which every combination is a run; the first "
                      "key varies slowest.")}),
      "sweep: {grid: {scheme.name: [gpipe, pipedream], pipeline.stages: [2, 4], train.seed: [1, "
      "2, 3]}}"};
}

CompositionSection profiles() {
  return {
      section("profiles",
              "Named changes of the file, of which `--profile NAME` applies one: each a mapping "
              "of dotted keys or whole sections.",
              {}),
      "profiles: {quick: {train.epochs: 1, loader.limit_train: 1000}}"};
}

CompositionSection extends() {
  return {section("extends",
                  "A file whose options this one changes, key by key; its path is relative to this "
                  "file.",
                  {}),
          "extends: base.yaml"};
}

}  // namespace

std::vector<CompositionSection> composition_sections() {
  std::vector<CompositionSection> sections;
  for (const ExperimentKey& key : experiment_keys()) {
    if (key.use != KeyUse::Composition) continue;
    if (key.name == "extends")
      sections.push_back(extends());
    else if (key.name == "profiles")
      sections.push_back(profiles());
    else if (key.name == "sweep")
      sections.push_back(sweep());
    else
      throw Error(ErrorKind::Bug, concat("the key '", key.name, "' is not described"));
  }
  return sections;
}

}  // namespace pipewright
