// SPDX-License-Identifier: Apache-2.0
/// Many short lists of tokens, stored contiguously.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/error.h"

namespace pipewright {

class TokenLists {
 public:
  void append(std::span<const std::int32_t> list) {
    tokens_.insert(tokens_.end(), list.begin(), list.end());
    begins_.push_back(tokens_.size());
  }
  std::int64_t size() const { return static_cast<std::int64_t>(begins_.size()) - 1; }
  std::span<const std::int32_t> operator[](std::int64_t index) const {
    PIPEWRIGHT_CHECK(index >= 0 && index < size(), "sample ", index);
    const auto i = static_cast<std::size_t>(index);
    return std::span(tokens_).subspan(begins_[i], begins_[i + 1] - begins_[i]);
  }

 private:
  std::vector<std::int32_t> tokens_;
  std::vector<std::size_t> begins_{0};  // list i is tokens_[begins_[i] … begins_[i + 1])
};

}  // namespace pipewright
