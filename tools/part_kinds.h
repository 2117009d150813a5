/// The kinds of registered parts, for the commands that talk about them.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace pipewright {

struct PartKind {
  std::string name;    ///< "scheme"; also the section of the experiment file
  std::string plural;  ///< "schemes"
  std::function<std::vector<std::string>()> names;
  std::function<std::string(const std::string&)> summary;  ///< of a registered name
};

/// Schemes, models, data sets, codecs, optimizers and losses.
const std::vector<PartKind>& part_kinds();

}  // namespace pipewright
