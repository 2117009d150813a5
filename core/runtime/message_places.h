// SPDX-License-Identifier: Apache-2.0
/// Where messages in flight lie in one table: each link has as many places as it needs, and its
/// messages take them in turn.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/as_size.h"
#include "core/runtime/program.h"

namespace pipewright {

class MessagePlaces {
 public:
  explicit MessagePlaces(const Program& program) {
    for (const Link& link : program.links) {
      links_.push_back({count_, link.places, link.each_round});
      count_ += as_size(link.places);
    }
  }
  std::size_t count() const { return count_; }
  std::size_t index(const Port& port) const {
    const Places& link = links_[as_size(port.link)];
    return link.first + static_cast<std::size_t>(port.turn % link.count);
  }
  /// Moves what is in the places to those of as many rounds later.
  template <class Item>
  void move_on(std::vector<Item>& items, std::int64_t rounds) const {
    for (const Places& link : links_) {
      if (link.count == 0) continue;
      const auto first = items.begin() + static_cast<std::ptrdiff_t>(link.first),
                 end = first + link.count;
      std::rotate(first, end - rounds * link.each_round % link.count, end);
    }
  }

 private:
  struct Places {
    std::size_t first = 0;
    int count = 0, each_round = 0;
  };
  std::vector<Places> links_;
  std::size_t count_ = 0;
};

}  // namespace pipewright
