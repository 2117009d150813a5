// SPDX-License-Identifier: Apache-2.0
/// An announcement: the types and shapes of a message's tensors, sent ahead of it as a message of
/// its own.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "core/nn/layer.h"

namespace pipewright {

/// Type and sizes of one tensor, which is contiguous or in channels-last memory.
struct Shape {
  at::ScalarType type = at::kFloat;
  std::vector<std::int64_t> sizes;
  bool channels_last = false;
  bool operator==(const Shape&) const = default;
};
using Shapes = std::vector<Shape>;

std::size_t bytes_of(const Shape& shape);
Shapes shapes_of(const Tensors& message);
/// Uninitialised tensors of these shapes.
Tensors room_for(const Shapes& shapes, at::Device device);

/// A tensor of zeros to receive an announcement into, which is as long or shorter.
at::Tensor room_for_announcement();
/// The announcement of a message over that link. Throws Error{Experiment} if it has too many
/// tensors: more than 8192 numbers, of which each tensor needs three and its sizes.
at::Tensor announcement(int link, const Shapes& shapes);
/// A short one, if the shapes are known.
at::Tensor announcement(int link);
/// Read an announcement, a short one for its link only. Throws Error{Bug} if it is damaged.
int announced_link(const at::Tensor& numbers);
Shapes announced_shapes(const at::Tensor& numbers);

}  // namespace pipewright
