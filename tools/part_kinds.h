// SPDX-License-Identifier: Apache-2.0
/// The kinds of registered parts, for `list`, `describe` and `schema`.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace pipewright {

struct PartKind {
  std::string name;    ///< such as "scheme"; also the section of the experiment file
  std::string plural;  ///< such as "schemes"
  std::function<std::vector<std::string>()> names;
  std::function<std::string(const std::string&)> summary;  ///< summary of a part, by name
};

/// Schemes, models, data sets, codecs, optimizers and losses.
const std::vector<PartKind>& part_kinds();

}  // namespace pipewright
