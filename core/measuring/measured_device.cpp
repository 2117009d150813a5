// SPDX-License-Identifier: Apache-2.0
#include "core/measuring/measured_device.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <vector>

#include "core/base/text.h"

namespace pipewright {
namespace {

/// The rest of the first line that begins so, without spaces around it; "" if there is none.
std::string line_of(const std::filesystem::path& file, const std::string& begin) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(begin)) continue;
    const std::size_t text = line.find_first_not_of(" \t", line.find(':') + 1);
    return text == std::string::npos ? std::string() : line.substr(text);
  }
  return {};
}

/// The models of NVIDIA's devices in the order of their addresses.
std::vector<std::string> nvidia_models() {
  std::vector<std::filesystem::path> devices;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/driver/nvidia/gpus", none))
    devices.push_back(entry.path());
  std::ranges::sort(devices);
  std::vector<std::string> models;
  models.reserve(devices.size());
  for (const auto& device : devices) models.push_back(line_of(device / "information", "Model:"));
  return models;
}

std::string letters_and_digits(const std::string& text) {
  std::string kept;
  for (const char c : text)
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      kept += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return kept;
}

}  // namespace

std::string processor_name() {
  const std::string name = line_of("/proc/cpuinfo", "model name");
  return name.empty() ? "unknown" : name;
}

std::string device_model(at::Device device) {
  if (device.is_cpu()) return processor_name();
  if (!device.is_cuda()) return {};
  const std::vector<std::string> models = nvidia_models();
  const std::size_t own = device.has_index() ? static_cast<std::size_t>(device.index()) : 0;
  const bool equal = std::ranges::adjacent_find(models, std::not_equal_to<>()) == models.end();
  if (models.empty() || (!equal && own >= models.size())) return {};
  return equal ? models.front() : models[own];
}

std::string device_in_words(const Profile& profile) {
  if (profile.device_model.empty()) return profile.device;
  return concat(profile.device, " (", profile.device_model, ")");
}

bool may_be_of(const Profile& profile, const std::string& device_name) {
  const std::string wanted = letters_and_digits(device_name);
  const std::string own =
      letters_and_digits(profile.device_model.empty() ? profile.device : profile.device_model);
  return own.find(wanted) != std::string::npos || wanted.find(own) != std::string::npos;
}

}  // namespace pipewright
