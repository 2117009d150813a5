// SPDX-License-Identifier: Apache-2.0
#include "core/experiment/catalogue.h"

#include <utility>

#include "core/codecs/codec.h"
#include "core/experiment/reading.h"

namespace pipewright {
namespace {

std::vector<std::string> paths_in(const std::vector<OptionInfo>& options,
                                  const std::string& section) {
  std::vector<std::string> paths;
  for (const OptionInfo& option : options) {
    if (option.type == OptionInfo::Type::Path) paths.push_back(section + option.name);
    for (std::string& path : paths_in(option.section, section + option.name + "."))
      paths.push_back(std::move(path));
  }
  return paths;
}

/// The options that the parts named in a document declare, with those of all sections.
std::vector<OptionInfo> declared_by(const Value& document) {
  Problems problems;
  Options root(&document, "", problems);
  Experiment e;
  BalanceOption balance;
  read_sections(root, e, balance);
  return root.declared();
}

template <class Part>
std::vector<OptionInfo> options_of(const std::string& name) {
  const auto* entry = Registry<Part>::instance().find(name);
  if (entry == nullptr) return {};
  const Value nothing = Value::mapping();
  Problems problems;
  Options options(&nothing, "", problems);
  entry->make(options);
  return options.declared();
}

}  // namespace

std::vector<std::string> paths_among(const std::vector<OptionInfo>& options) {
  return paths_in(options, "");
}

std::vector<std::string> path_options(const Value& resolved) {
  return paths_among(declared_by(resolved));
}

std::vector<OptionInfo> experiment_options() {
  return declared_by(Value::mapping());
}

std::vector<OptionInfo> part_options(const std::string& kind, const std::string& name) {
  if (kind == "scheme") return options_of<Scheme>(name);
  if (kind == "model") return options_of<Model>(name);
  if (kind == "dataset") return options_of<Dataset>(name);
  if (kind == "optimizer") return options_of<Optimizer>(name);
  if (kind == "loss") return options_of<Loss>(name);
  if (kind == "codec") return options_of<Codec>(name);
  if (kind == "gradient_rule") return options_of<GradientRule>(name);
  if (kind == "probe") return options_of<Probe>(name);
  return {};
}

}  // namespace pipewright
