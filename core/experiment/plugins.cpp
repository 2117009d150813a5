#include "core/experiment/plugins.h"

#include <dlfcn.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/machine_limits.h"
#include "core/base/sha256.h"
#include "core/base/stamp.h"
#include "core/schedule/schedule.h"

namespace pipewright {
namespace {

std::vector<Plugin>& plugins() {
  static std::vector<Plugin> all;
  return all;
}

[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& message) {
  throw Error(ErrorKind::Experiment, message, path.string());
}

/// The open file of a plugin: what is checked and hashed is what is loaded.
class PluginFile {
 public:
  /// A plugin that is not there is a mistake on the command line, not missing data.
  explicit PluginFile(const std::filesystem::path& path)
      : file_(path, O_RDONLY | O_NONBLOCK), loaded_as_(concat("/proc/self/fd/", file_.number())) {
    struct stat status {};
    if (!file_.is_open() || ::fstat(file_.number(), &status) != 0)
      refuse(path, concat("cannot open: ", errno_text(errno)));
    if (S_ISFIFO(status.st_mode) || S_ISCHR(status.st_mode)) refuse(path, "is no regular file");
    if ((status.st_mode & S_IWOTH) != 0)
      refuse(path, "may be written by everybody, so anybody's code could be in it; `chmod o-w` it");
    try {
      bytes_ = read_file(loaded_as_);
    } catch (const Error& error) {
      refuse(path, error.message());
    }
  }

  const std::string& bytes() const { return bytes_; }

  /// For as long as the process lives: the loader knows the library by the descriptor's number.
  bool load() {
    static std::vector<Descriptor> kept;
    kept.push_back(std::move(file_));
    return ::dlopen(loaded_as_.c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr;
  }

  /// What the loader says, without the name that it knows the library by.
  std::string loader_message() const {
    const char* said = ::dlerror();
    std::string text = said == nullptr ? "the system does not say why" : said;
    const std::string prefix = loaded_as_ + ": ";
    return text.starts_with(prefix) ? text.substr(prefix.size()) : text;
  }

 private:
  Descriptor file_;
  std::string loaded_as_;
  std::string bytes_;
};

/// "Pipewright itself", or the plugin that has it.
std::string owner_of(const std::string& scheme) {
  const auto owner = std::ranges::find_if(plugins(), [&](const Plugin& plugin) {
    return std::ranges::count(plugin.schemes, scheme) > 0;
  });
  return owner == plugins().end() ? std::string("Pipewright itself") : owner->path.string();
}

/// The names of its schemes, all of which may be registered.
std::vector<std::string> checked_schemes(const std::filesystem::path& path,
                                         const std::string& bytes) {
  if (!bytes.starts_with("\177ELF"))
    refuse(path, "is not a shared library; expected what CMake's add_library(… MODULE …) builds");
  std::vector<std::string> names;
  for (const Stamp& stamp : read_stamps(bytes)) {
    if (const std::string why = misfit(stamp); !why.empty())
      refuse(path, concat("its scheme '", stamp.name, "' ", why));
    if (Registry<Scheme>::instance().find(stamp.name) != nullptr)
      refuse(path, concat("its scheme '", stamp.name, "' is there already, from ",
                          owner_of(stamp.name), "; give it another name"));
    if (std::ranges::count(names, stamp.name) > 0)
      refuse(path, concat("has two schemes '", stamp.name, "'; give one another name"));
    names.push_back(stamp.name);
  }
  if (names.empty()) refuse(path, "has no scheme; expected a PIPEWRIGHT_SCHEME in it");
  return names;
}

}  // namespace

void load_plugin(const std::filesystem::path& path) {
  PluginFile file(path);
  const std::vector<std::string> schemes = checked_schemes(path, file.bytes());
  if (!file.load()) refuse(path, concat("cannot be loaded: ", file.loader_message()));
  for (const std::string& scheme : schemes)
    if (Registry<Scheme>::instance().find(scheme) == nullptr)
      refuse(path, concat("did not register its scheme '", scheme,
                          "'; link it to Pipewright::pipewright, the shared library"));
  plugins().push_back(
      {std::filesystem::absolute(path).lexically_normal(), sha256(file.bytes()), schemes});
}

const std::vector<Plugin>& loaded_plugins() {
  return plugins();
}

std::vector<std::string> plugin_arguments() {
  std::vector<std::string> arguments;
  for (const Plugin& plugin : plugins())
    arguments.insert(arguments.end(), {"--plugin", plugin.path.string()});
  return arguments;
}

std::string plugin_words() {
  std::string words;
  for (const std::string& argument : plugin_arguments())
    words += concat(" ", shell_quoted(argument));
  return words;
}

}  // namespace pipewright
