// SPDX-License-Identifier: Apache-2.0
#include "datasets/images/idx.h"

#include <string>

#include "core/base/error_at.h"

namespace pipewright {
namespace {

constexpr std::uint32_t kUnsignedBytes = 0x800;

std::uint32_t big_endian(std::string_view content, std::size_t position) {
  std::uint32_t value = 0;
  for (const char c : content.substr(position, 4))
    value = value << 8 | static_cast<std::uint8_t>(c);
  return value;
}

}  // namespace

std::uint64_t idx_size(std::span<const std::int64_t> dimensions) {
  std::uint64_t elements = 1;
  for (const std::int64_t size : dimensions) elements *= static_cast<std::uint64_t>(size);
  return 4 + 4 * dimensions.size() + elements;
}

std::string_view idx_elements(std::string_view content, std::span<const std::int64_t> dimensions,
                              const std::filesystem::path& path) {
  const auto require = [&path](bool holds, const std::string& message) {
    if (!holds) throw data_error(path, message);
  };
  const std::size_t header = 4 + 4 * dimensions.size();
  require(content.size() >= header, concat("has ", content.size(), " bytes, no idx header"));
  const std::uint32_t magic = big_endian(content, 0);
  const std::uint32_t expected = kUnsignedBytes + static_cast<std::uint32_t>(dimensions.size());
  require(magic == expected, concat("is not an idx file of bytes in ", dimensions.size(),
                                    " dimensions: magic number ", magic, ", must be ", expected));
  for (std::size_t d = 0; d < dimensions.size(); ++d) {
    const std::uint32_t size = big_endian(content, 4 + 4 * d);
    require(size == static_cast<std::uint64_t>(dimensions[d]),
            d == 0 ? concat("holds ", size, " records, must be ", dimensions[d])
                   : concat("records have size ", size, " in dimension ", d, ", must be ",
                            dimensions[d]));
  }
  require(content.size() == idx_size(dimensions),
          concat("has ", content.size(), " bytes, its header needs ", idx_size(dimensions)));
  return content.substr(header);
}

}  // namespace pipewright
