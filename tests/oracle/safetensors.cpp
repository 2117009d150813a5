// SPDX-License-Identifier: Apache-2.0
#include "safetensors.h"

#include <bit>
#include <cstring>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>
#include <stdexcept>

namespace oracle {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::size_t kElementBytes = 8;

template <typename T>
void append(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <typename T>
T load(const std::string& bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("no file " + path.string());
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

void write_safetensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors) {
  auto header = nlohmann::ordered_json::object();
  std::string data;
  for (const NamedTensor& tensor : tensors) {
    const std::size_t begin = data.size();
    for (const double value : tensor.values) {
      if (tensor.integers)
        append(data, static_cast<std::int64_t>(value));
      else
        append(data, value);
    }
    header[tensor.name] = {{"dtype", tensor.integers ? "I64" : "F64"},
                           {"shape", tensor.shape},
                           {"data_offsets", {begin, data.size()}}};
  }
  std::string text = header.dump();
  text.resize((text.size() + kElementBytes - 1) / kElementBytes * kElementBytes, ' ');
  std::string bytes;
  append(bytes, static_cast<std::uint64_t>(text.size()));
  std::ofstream file(path, std::ios::binary);
  file << bytes << text << data;
  if (!file.flush()) throw std::runtime_error("cannot write " + path.string());
}

std::map<std::string, NamedTensor> read_safetensors(const std::filesystem::path& path) {
  const std::string bytes = contents(path);
  const auto damaged = [&path](const std::string& what) {
    return std::runtime_error(path.string() + " is damaged: " + what);
  };
  if (bytes.size() < sizeof(std::uint64_t)) throw damaged("no header");
  const std::size_t header_bytes = load<std::uint64_t>(bytes, 0);
  const std::size_t data = sizeof(std::uint64_t) + header_bytes;
  if (header_bytes > bytes.size() || data > bytes.size()) throw damaged("header length");
  std::map<std::string, NamedTensor> tensors;
  const auto header = nlohmann::json::parse(bytes.substr(sizeof(std::uint64_t), header_bytes));
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    NamedTensor tensor{name, entry.at("shape").get<std::vector<std::int64_t>>(), {}, false};
    const std::string dtype = entry.at("dtype");
    if (dtype != "F64" && dtype != "I64") throw damaged(name + " has dtype " + dtype);
    tensor.integers = dtype == "I64";
    const std::size_t begin = entry.at("data_offsets").at(0), end = entry.at("data_offsets").at(1);
    const std::int64_t count = std::accumulate(tensor.shape.begin(), tensor.shape.end(),
                                               std::int64_t{1}, std::multiplies<>());
    if (end < begin || data + end > bytes.size() ||
        end - begin != static_cast<std::size_t>(count) * kElementBytes)
      throw damaged(name + "'s offsets");
    for (std::size_t i = data + begin; i < data + end; i += kElementBytes)
      tensor.values.push_back(tensor.integers ? static_cast<double>(load<std::int64_t>(bytes, i))
                                              : load<double>(bytes, i));
    tensors.emplace(name, std::move(tensor));
  }
  return tensors;
}

}  // namespace oracle
