/// Messages that come in one order and are wanted in another.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "core/stage/layer.h"

namespace pipewright {

class EarlyMessages {
 public:
  explicit EarlyMessages(std::vector<int> order) : order_(std::move(order)) {}

  bool more() const { return next_ < order_.size(); }
  /// The message, after taking those that come before it with next().
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
