/// The shapes of a message's tensors as a message of its own, which goes ahead.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "core/stage/layer.h"

namespace pipewright {

/// Of one tensor.
struct Shape {
  at::ScalarType type = at::kFloat;
  std::vector<std::int64_t> sizes;
  bool operator==(const Shape&) const = default;
};
using Shapes = std::vector<Shape>;

std::size_t bytes_of(const Shape& shape);
Shapes shapes_of(const Tensors& message);
/// Tensors of such shapes, with memory that says nothing yet.
Tensors room_for(const Shapes& shapes, at::Device device);

/// What holds every announcement.
at::Tensor room_for_announcement();
at::Tensor announcement(const Shapes& shapes);
/// Throws Error{Bug} where the numbers make no sense.
Shapes announced(const at::Tensor& numbers);

}  // namespace pipewright
