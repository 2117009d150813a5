// SPDX-License-Identifier: Apache-2.0
/// Where messages in flight lie in one table: each link has as many places as it needs, and its
/// messages take them in turn.
#pragma once

#include <cstddef>
#include <vector>

#include "core/base/as_size.h"
#include "core/runtime/program.h"

namespace pipewright {

class MessagePlaces {
 public:
  explicit MessagePlaces(const Program& program) {
    for (const Link& link : program.links) {
      links_.push_back({count_, link.places});
      count_ += as_size(link.places);
    }
  }
  std::size_t count() const { return count_; }
  std::size_t index(const Port& port) const {
    const Places& link = links_[as_size(port.link)];
    return link.first + static_cast<std::size_t>(port.turn % link.count);
  }

 private:
  struct Places {
    std::size_t first = 0;
    int count = 0;
  };
  std::vector<Places> links_;
  std::size_t count_ = 0;
};

}  // namespace pipewright
