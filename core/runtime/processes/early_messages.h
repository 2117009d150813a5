// SPDX-License-Identifier: Apache-2.0
/// Buffer for messages that arrive in one order and are received in another.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "core/stage/layer.h"

namespace pipewright {

class EarlyMessages {
 public:
  /// `order`: the numbers of all messages in the order of their arrival.
  explicit EarlyMessages(std::vector<int> order) : order_(std::move(order)) {}

  /// Whether messages are still to arrive.
  bool more() const { return next_ < order_.size(); }
  /// Returns the message, after buffering those that arrive before it. next() returns the next
  /// arrival.
  template <class Next>
  Tensors find(int message, const Next& next) {
    for (;;) {
      if (auto early = early_.extract(message)) return std::move(early.mapped());
      const int number = order_[next_++];
      Tensors tensors = next();
      if (number == message) return tensors;
      early_.emplace(number, std::move(tensors));
    }
  }

 private:
  std::vector<int> order_;
  std::size_t next_ = 0;
  std::map<int, Tensors> early_;
};

}  // namespace pipewright
