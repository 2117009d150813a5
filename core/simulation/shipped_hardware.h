// SPDX-License-Identifier: Apache-2.0
/// The descriptions of hardware that come with the program, by name: experiments/hardware, beside
/// the build folder of a source tree or under share/pipewright of an installation.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace pipewright {

struct ShippedHardware {
  std::string name;     ///< "dgx1-v100"
  std::string summary;  ///< what its file says: "DGX-1, 8 x V100"
};

/// The descriptions found, by name; none if the program stands alone.
std::vector<ShippedHardware> shipped_hardware();

/// The file that --hardware means: `given` itself, or, if that is a name without '/' and '.' and
/// there is no such file, the shipped one of that name. Throws Error{Experiment} with the known
/// names if there is none.
std::filesystem::path hardware_file(const std::string& given);

}  // namespace pipewright
