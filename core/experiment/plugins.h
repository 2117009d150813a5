// SPDX-License-Identifier: Apache-2.0
/// Schemes compiled outside this repository, as shared libraries named on the command line.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace pipewright {

struct Plugin {
  std::filesystem::path path;  ///< absolute
  std::string sha256;          ///< of the file
  std::vector<std::string> schemes;
};

/// Loads a shared library, which registers its schemes like our own and stays loaded. Throws
/// Error{Experiment}, before any of its code runs, if it is no shared library, is world-writable,
/// has no scheme, was compiled for an incompatible Pipewright, or has a scheme whose name is taken.
/// Call it before other threads look up schemes.
void load_plugin(const std::filesystem::path& path);

/// The plugins loaded so far, in the order of loading.
const std::vector<Plugin>& loaded_plugins();

/// The arguments that give another process the same schemes: {"--plugin", "/path/half_way.so", …}.
std::vector<std::string> plugin_arguments();
/// These arguments quoted for a shell command in a message, each after a blank; "" without plugins.
std::string plugin_words();

}  // namespace pipewright
