// SPDX-License-Identifier: Apache-2.0
/// Schemes, models and other parts compiled outside this repository, as shared libraries named on
/// the command line.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace pipewright {

struct PluginPart {
  std::string kind, name;  ///< "scheme", "half_way"
  bool operator==(const PluginPart&) const = default;
};

struct Plugin {
  std::filesystem::path path;  ///< absolute
  std::string sha256;          ///< of the file
  std::vector<PluginPart> parts;
};

/// Loads a shared library, which registers its parts like our own and stays loaded; once, if it is
/// named again. Throws Error{Experiment}, before any of its code runs, if it is no shared library,
/// is world-writable, has no part, was compiled for an incompatible Pipewright or LibTorch, or has
/// a part whose name is taken. If it has parts with tensors and the program runs without LibTorch,
/// the program begins anew with it. Call it before other threads look up parts.
void load_plugin(const std::filesystem::path& path);

/// The plugins loaded so far, in the order of loading.
const std::vector<Plugin>& loaded_plugins();

/// The arguments that give another process the same parts: {"--plugin", "/path/half_way.so", …}.
std::vector<std::string> plugin_arguments();
/// These arguments quoted for a shell command in a message, each after a blank; "" without plugins.
std::string plugin_words();

}  // namespace pipewright
