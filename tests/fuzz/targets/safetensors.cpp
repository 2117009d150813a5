// SPDX-License-Identifier: Apache-2.0
// Files of tensors. A file that is read and written again has the same tensors, metadata and bytes,
// and its header alone has the same names and shapes.
#include "core/tensor_files/safetensors.h"

#include <algorithm>
#include <cstring>

#include "core/tensors/torch.h"
#include "tests/fuzz/scratch.h"
#include "tests/fuzz/target.h"

namespace pipewright::fuzz {
namespace {

std::string_view bytes_of(const at::Tensor& tensor) {
  return {static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()};
}

bool same(const TensorFile& a, const TensorFile& b) {
  return a.metadata == b.metadata &&
         std::ranges::equal(a.tensors, b.tensors, [](const auto& x, const auto& y) {
           return x.first == y.first && x.second.scalar_type() == y.second.scalar_type() &&
                  x.second.sizes() == y.second.sizes() && bytes_of(x.second) == bytes_of(y.second);
         });
}

std::string read(std::string_view bytes) {
  static MemoryFile file;
  const TensorFile parsed = parse_safetensors(std::string(bytes), "fuzz.safetensors");
  const std::string written = safetensors_bytes(parsed);
  const TensorFile again =
      reread([&] { return parse_safetensors(written, "written.safetensors"); });
  require(same(parsed, again), "what is written holds other tensors");
  require(safetensors_bytes(again) == written, "what is written is written in another way");
  const std::filesystem::path& path = file.holding(bytes);
  require(same(parsed, reread([&] { return read_safetensors(path); })),
          "the file holds other tensors than its bytes");
  const auto headers = reread([&] { return read_safetensors_header(path); });
  require(std::ranges::equal(headers, parsed.tensors,
                             [](const TensorHeader& header, const auto& tensor) {
                               return header.name == tensor.first &&
                                      tensor.second.sizes() == at::IntArrayRef(header.shape);
                             }),
          "the header has other shapes than the tensors");
  std::uint64_t data = 0;
  for (const auto& [name, tensor] : parsed.tensors) data += tensor.nbytes();
  require(data < bytes.size(), "the tensors are larger than the file");
  return written;
}

/// The length of the header: up to the last brace before the data, if there is one.
void mend(std::string& bytes) {
  constexpr std::size_t kLength = 8;
  const std::size_t end = bytes.rfind('}');
  if (bytes.size() < kLength || end == std::string::npos || end < kLength) return;
  const std::uint64_t length = end + 1 - kLength;
  std::memcpy(bytes.data(), &length, kLength);
}

/// A tensor without elements takes 60 bytes of a header; its object, its layout and its entry in
/// several lists ten times that.
std::size_t most_memory(std::string_view bytes) {
  return (1 << 20) + 256 * bytes.size();
}

}  // namespace

const Target kTarget{.read = read, .most_memory = most_memory, .mend = mend, .rounds = 10'000};

}  // namespace pipewright::fuzz
