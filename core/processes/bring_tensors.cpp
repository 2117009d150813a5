// SPDX-License-Identifier: Apache-2.0
#include "core/processes/bring_tensors.h"

#include <algorithm>
#include <cstring>

#include "core/base/as_size.h"
#include "core/base/error.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

/// One line per tensor: type, number of dimensions, sizes, name.
std::string list_of(const NamedTensors& tensors) {
  std::string list;
  for (const auto& [name, tensor] : tensors) {
    list += concat(static_cast<int>(tensor.scalar_type()), " ", tensor.dim(), " ");
    for (const std::int64_t size : tensor.sizes()) list += concat(size, " ");
    list += name + "\n";
  }
  return list;
}

/// The name and an uninitialised tensor for such a line.
std::pair<std::string, at::Tensor> room_for(const std::string& line) {
  std::vector<std::string> words = split(line, ' ');
  PIPEWRIGHT_CHECK(words.size() >= 3, "a damaged list of tensors: ", line);
  const auto type = static_cast<at::ScalarType>(std::stoi(words[0]));
  const std::size_t dimensions = as_size(std::stoi(words[1]));
  PIPEWRIGHT_CHECK(words.size() >= dimensions + 3, "a damaged list of tensors: ", line);
  std::vector<std::int64_t> sizes;
  for (std::size_t d = 0; d < dimensions; ++d) sizes.push_back(std::stoll(words[2 + d]));
  words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(2 + dimensions));
  return {join(words, " "), at::empty(sizes, at::TensorOptions(type))};
}

/// Collective: copies the bytes of process `from`'s tensor into process 0's, 8 MiB at a time.
void bring(Team& team, int from, const at::Tensor& tensor, double bytes) {
  constexpr double kPiece = 8 << 20;
  for (double begin = 0; begin < bytes; begin += kPiece) {
    const auto offset = static_cast<std::size_t>(begin);
    const auto count = static_cast<std::size_t>(std::min(kPiece, bytes - begin));
    std::string piece;
    if (team.rank() == from)
      piece.assign(static_cast<const char*>(tensor.const_data_ptr()) + offset, count);
    const std::vector<std::string> all = team.gather(std::move(piece));
    if (team.first())
      std::memcpy(static_cast<char*>(tensor.mutable_data_ptr()) + offset, all[as_size(from)].data(),
                  count);
  }
}

}  // namespace

NamedTensors bring_tensors(Team& team, int from, const NamedTensors& own) {
  if (from == 0) return team.first() ? own : NamedTensors();
  const bool sends = team.rank() == from;
  const std::vector<std::string> lists = team.gather(sends ? list_of(own) : std::string());
  NamedTensors brought;
  if (team.first())
    for (const std::string& line : split(lists[as_size(from)], '\n'))
      if (!line.empty()) brought.push_back(room_for(line));
  double count = sends ? static_cast<double>(own.size()) : 0;
  team.sum({&count, 1});  // all members make the collective calls below
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    at::Tensor tensor;
    if (sends) tensor = own[i].second.cpu().contiguous();
    if (team.first()) tensor = brought[i].second;
    double bytes = sends ? static_cast<double>(tensor.nbytes()) : 0;
    team.sum({&bytes, 1});
    bring(team, from, tensor, bytes);
  }
  return brought;
}

}  // namespace pipewright
