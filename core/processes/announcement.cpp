// SPDX-License-Identifier: Apache-2.0
#include "core/processes/announcement.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/nn/memory_format.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

/// Length of an announcement in 64-bit numbers: the link, the number of tensors, then of each the
/// type, whether it is in channels-last memory, the number of dimensions and the sizes. A short one
/// is the link alone.
constexpr std::int64_t kNumbers = 8192;

}  // namespace

std::size_t bytes_of(const Shape& shape) {
  std::size_t bytes = c10::elementSize(shape.type);
  for (const std::int64_t size : shape.sizes) bytes *= static_cast<std::size_t>(size);
  return bytes;
}

Shapes shapes_of(const Tensors& message) {
  Shapes shapes;
  for (const at::Tensor& tensor : message)
    shapes.push_back({tensor.scalar_type(), tensor.sizes().vec(), in_channels_last(tensor)});
  return shapes;
}

Tensors room_for(const Shapes& shapes, at::Device device) {
  Tensors tensors;
  for (const Shape& shape : shapes)
    tensors.push_back(at::empty(
        shape.sizes, at::TensorOptions(shape.type).device(device),
        shape.channels_last ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous));
  return tensors;
}

at::Tensor room_for_announcement() {
  return at::zeros({kNumbers}, at::kLong);
}

at::Tensor announcement(int link) {
  return at::full({1}, link, at::kLong);
}

at::Tensor announcement(int link, const Shapes& shapes) {
  std::vector<std::int64_t> numbers{link, std::ssize(shapes)};
  for (const Shape& shape : shapes) {
    numbers.push_back(static_cast<std::int64_t>(shape.type));
    numbers.push_back(shape.channels_last ? 1 : 0);
    numbers.push_back(std::ssize(shape.sizes));
    numbers.insert(numbers.end(), shape.sizes.begin(), shape.sizes.end());
  }
  if (std::ssize(numbers) > kNumbers)
    throw Error(ErrorKind::Experiment,
                concat("a message between two stages has ", shapes.size(),
                       " tensors, more than processes can exchange at once; cut the model "
                       "elsewhere, or give pipeline.execution: threads"));
  return at::tensor(numbers, at::kLong);
}

int announced_link(const at::Tensor& numbers) {
  return static_cast<int>(*numbers.const_data_ptr<std::int64_t>());
}

Shapes announced_shapes(const at::Tensor& numbers) {
  const std::int64_t* next = numbers.const_data_ptr<std::int64_t>();
  const std::int64_t* const end = next + kNumbers;
  ++next;  // the link
  auto take = [&](std::int64_t limit) {
    PIPEWRIGHT_CHECK(next < end && *next >= 0 && *next <= limit, "a damaged announcement");
    return *next++;
  };
  Shapes shapes(static_cast<std::size_t>(take(kNumbers)));
  for (Shape& shape : shapes) {
    shape.type = static_cast<at::ScalarType>(take(static_cast<std::int64_t>(at::kBFloat16)));
    shape.channels_last = take(1) == 1;
    shape.sizes.resize(static_cast<std::size_t>(take(kNumbers)));
    for (std::int64_t& size : shape.sizes) size = take(std::int64_t{1} << 40);
  }
  return shapes;
}

}  // namespace pipewright
