// SPDX-License-Identifier: Apache-2.0
#include "datasets/images/cifar.h"

namespace pipewright {

void append_cifar_records(OfficialFiles& files, const OfficialFile& file, const CifarLabel& label,
                          ByteImages& images) {
  const std::string content = files.read(file);
  const std::size_t record = label.labels + kCifarPixels, records = content.size() / record;
  images.pixels.reserve(images.pixels.size() + records * kCifarPixels);
  for (std::size_t i = 0; i < records; ++i) {
    const auto value = static_cast<std::uint8_t>(content[i * record + label.position]);
    if (value >= label.classes)
      throw_bad_label(files.place_of(file), static_cast<std::int64_t>(i), value, label.classes);
    images.append(std::string_view(content).substr(i * record + label.labels, kCifarPixels), value);
  }
}

}  // namespace pipewright
