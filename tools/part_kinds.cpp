// SPDX-License-Identifier: Apache-2.0
#include "tools/part_kinds.h"

#include <algorithm>

#include "core/codecs/codec.h"
#include "core/experiment/experiment.h"
#include "core/nn/dataset.h"
#include "core/nn/loss.h"
#include "core/nn/metric.h"
#include "core/nn/model.h"
#include "core/optim/gradient_rules/gradient_rule.h"
#include "core/optim/optimizer.h"
#include "core/probes/probe.h"
#include "core/schedule/schedule.h"

namespace pipewright {
namespace {

template <class Part>
PartKind kind_of(const std::string& name, const std::string& plural) {
  return {name, plural, [] { return Registry<Part>::instance().names(); },
          [](const std::string& part) { return Registry<Part>::instance().find(part)->summary; }};
}

/// BLEU is computed from translations, not from outputs, and so is none of the registered metrics.
PartKind metrics() {
  PartKind kind = kind_of<Metric>("metric", "metrics");
  const PartKind registered = kind;
  kind.names = [registered] {
    std::vector<std::string> names = registered.names();
    names.insert(std::ranges::lower_bound(names, kBleu), kBleu);
    return names;
  };
  kind.summary = [registered](const std::string& name) {
    return name == kBleu ? "BLEU of translations of the test samples." : registered.summary(name);
  };
  return kind;
}

}  // namespace

const std::vector<PartKind>& part_kinds() {
  static const std::vector<PartKind> kinds{kind_of<Scheme>("scheme", "schemes"),
                                           kind_of<Model>("model", "models"),
                                           kind_of<Dataset>("dataset", "datasets"),
                                           kind_of<Codec>("codec", "codecs"),
                                           kind_of<Optimizer>("optimizer", "optimizers"),
                                           kind_of<Loss>("loss", "losses"),
                                           kind_of<GradientRule>("gradient_rule", "gradient_rules"),
                                           kind_of<Probe>("probe", "probes"),
                                           metrics()};
  return kinds;
}

}  // namespace pipewright
