// SPDX-License-Identifier: Apache-2.0
/// Buffer for messages that arrive in one order and are received in another.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "core/nn/layer.h"

namespace pipewright {

class EarlyMessages {
 public:
  /// Returns the message of that turn, after buffering those that arrive before it. next() returns
  /// the next arrival: its link, which says whose turn it is, and the message.
  template <class Next>
  Tensors find(int link, std::int64_t turn, const Next& next) {
    for (;;) {
      if (auto early = early_.extract({link, turn})) return std::move(early.mapped());
      auto [from, tensors] = next();
      const std::int64_t number = arrived_[from]++;
      if (from == link && number == turn) return std::move(tensors);
      early_.emplace(std::pair{from, number}, std::move(tensors));
    }
  }

 private:
  std::map<int, std::int64_t> arrived_;  ///< messages so far, by link
  std::map<std::pair<int, std::int64_t>, Tensors> early_;
};

}  // namespace pipewright
