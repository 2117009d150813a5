// SPDX-License-Identifier: Apache-2.0
#include "core/simulation/shipped_hardware.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/config/value.h"

namespace pipewright {
namespace {

namespace fs = std::filesystem;

/// The folder of the shipped descriptions; "" if there is none. The program lies up to three
/// folders below that of the sources or the installation.
fs::path shipped_folder() {
  std::error_code none;
  fs::path folder = fs::read_symlink("/proc/self/exe", none);
  for (int up = 0; up < 4 && folder.has_relative_path(); ++up) {
    folder = folder.parent_path();
    for (const char* below : {"share/pipewright/experiments/hardware", "experiments/hardware"})
      if (fs::exists(folder / below / "dgx1-v100.yaml", none)) return folder / below;
  }
  return {};
}

std::string name_in(const fs::path& file) {
  try {
    const Value document = load_yaml(file);
    const Value* const name = document.find("name");
    return name != nullptr ? name->text : std::string();
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

std::vector<ShippedHardware> shipped_hardware() {
  std::vector<ShippedHardware> all;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(shipped_folder(), none))
    if (entry.path().extension() == ".yaml")
      all.push_back({entry.path().stem().string(), name_in(entry.path())});
  std::ranges::sort(all, {}, &ShippedHardware::name);
  return all;
}

fs::path hardware_file(const std::string& given) {
  std::error_code none;
  if (given.empty() || given.find_first_of("/.") != std::string::npos || fs::exists(given, none))
    return given;
  std::vector<std::string> names;
  for (const ShippedHardware& each : shipped_hardware()) names.push_back(each.name);
  if (std::ranges::count(names, given) > 0) return shipped_folder() / concat(given, ".yaml");
  throw Error(ErrorKind::Experiment, concat("--hardware is ", given,
                                            ", and there is neither such a file nor hardware of "
                                            "that name",
                                            suggestion(given, names)));
}

}  // namespace pipewright
