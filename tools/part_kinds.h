// SPDX-License-Identifier: Apache-2.0
/// The kinds of registered parts, for `list`, `describe` and `schema`.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace pipewright {

struct PartKind {
  std::string name;    ///< such as "scheme"; also the section of the experiment file, if it has one
  std::string plural;  ///< such as "schemes"
  std::function<std::vector<std::string>()> names;
  std::function<std::string(const std::string&)> summary;  ///< summary of a part, by name
};

/// Schemes, models, data sets, codecs, optimizers, losses, gradient rules, probes and metrics.
const std::vector<PartKind>& part_kinds();

}  // namespace pipewright
