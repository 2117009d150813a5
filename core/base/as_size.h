/// Stages, workers and mini-batches are counted in int; containers in std::size_t.
#pragma once

#include <cstddef>

namespace pipewright {

/// Of a count or index, which is not negative.
constexpr std::size_t as_size(int i) {
  return static_cast<std::size_t>(i);
}

}  // namespace pipewright
