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

/// Loads a shared library whose schemes are then registered like our own. Throws Error{Experiment},
/// before any of its code runs, when it is no shared library, has no scheme, was compiled with a
/// Pipewright that does not fit, has a scheme that is there already, or can be written by
/// everybody. It stays loaded. Call it before other threads look for schemes.
void load_plugin(const std::filesystem::path& path);

/// Those loaded so far, in that order.
const std::vector<Plugin>& loaded_plugins();

/// {"--plugin", "/path/half_way.so", …}: what gives another process the same schemes.
std::vector<std::string> plugin_arguments();
/// The same as words of a command in a message, with a blank before each; "" without plugins.
std::string plugin_words();

}  // namespace pipewright
