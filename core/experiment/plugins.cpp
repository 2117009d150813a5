// SPDX-License-Identifier: Apache-2.0
#include "core/experiment/plugins.h"

#include <ATen/Parallel.h>
#include <dlfcn.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <exception>
#include <utility>

#include "core/base/checksum.h"
#include "core/base/error_at.h"
#include "core/base/stamp.h"
#include "core/experiment/plugin_kinds.h"
#include "core/runtime/build_info.h"
#include "core/system/descriptor.h"
#include "core/system/file.h"
#include "core/system/foreign_error.h"
#include "core/system/machine_limits.h"
#include "core/system/terminal.h"

namespace pipewright {
namespace {

std::vector<Plugin>& plugins() {
  static std::vector<Plugin> all;
  return all;
}

/// The open file of a plugin, so that the checks and the hash are of the file that is loaded.
class PluginFile {
 public:
  /// Opens and reads it. A missing plugin is a wrong command line, so Error{Experiment}.
  explicit PluginFile(const std::filesystem::path& path)
      : path_(std::filesystem::absolute(path).lexically_normal()),
        file_(path, O_RDONLY | O_NONBLOCK) {
    if (!file_.is_open() || ::fstat(file_.number(), &status_) != 0)
      throw experiment_error(path, "cannot open: ", errno_text(errno));
    if (S_ISFIFO(status_.st_mode) || S_ISCHR(status_.st_mode))
      throw experiment_error(path, "is no plain file; expected a shared library");
    if ((status_.st_mode & S_IWOTH) != 0)
      throw experiment_error(path,
                             "may be written by everybody, so it could hold anybody's code; forbid "
                             "that with `chmod o-w`");
    try {
      bytes_ = read_file(concat("/proc/self/fd/", file_.number()));
    } catch (const Error& error) {
      throw experiment_error(path, error.message());
    }
  }

  const std::filesystem::path& path() const { return path_; }
  const std::string& bytes() const { return bytes_; }

  /// Loads it by its path, so that it finds libraries beside it (`$ORIGIN`).
  bool load() { return ::dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr; }

  /// Whether the file has been written to or replaced since it was opened.
  bool changed() const {
    struct stat now {};
    const auto moment = [](const timespec& t) { return std::pair(t.tv_sec, t.tv_nsec); };
    return ::stat(path_.c_str(), &now) != 0 || now.st_dev != status_.st_dev ||
           now.st_ino != status_.st_ino || moment(now.st_ctim) != moment(status_.st_ctim);
  }

  /// The loader's message without the path before it.
  std::string loader_message() const {
    const char* said = ::dlerror();
    std::string text = said == nullptr ? "the system does not say why" : said;
    const std::string prefix = path_.string() + ": ";
    return text.starts_with(prefix) ? text.substr(prefix.size()) : text;
  }

 private:
  std::filesystem::path path_;
  Descriptor file_;  ///< kept open, so that no other file gets its inode number
  struct stat status_ {};
  std::string bytes_;
};

/// Who registered a part: "Pipewright itself" or the path of a plugin.
std::string owner_of(const PluginPart& part) {
  const auto owner = std::ranges::find_if(
      plugins(), [&](const Plugin& plugin) { return std::ranges::count(plugin.parts, part) > 0; });
  return owner == plugins().end() ? std::string("Pipewright itself") : owner->path.string();
}

/// The parts of a plugin. Refuses the plugin if one of them cannot be registered.
std::vector<PluginPart> checked_parts(const std::filesystem::path& path,
                                      const std::vector<Stamp>& stamps) {
  std::vector<PluginPart> parts;
  for (const Stamp& stamp : stamps) {
    const std::string part = concat("its ", stamp.kind, " '", stamp.name, "' ");
    if (const std::string why = misfit(stamp, build_info().torch_version); !why.empty())
      throw experiment_error(path, part + why);
    const PluginKind* const kind = find_plugin_kind(stamp.kind);
    if (kind == nullptr)
      throw experiment_error(path, part, "is of no known kind; expected ", plugin_kind_names());
    if (kind->knows(stamp.name))
      throw experiment_error(path, part, "exists already, in ", owner_of({stamp.kind, stamp.name}),
                             "; give it another name");
    parts.push_back({stamp.kind, stamp.name});
    if (std::ranges::count(parts, parts.back()) > 1)
      throw experiment_error(path, "has two parts of the kind ", stamp.kind, " named '", stamp.name,
                             "'; rename one of them");
  }
  return parts;
}

/// The stamps of a plugin; it has at least one.
std::vector<Stamp> stamps_of(const PluginFile& file, const std::filesystem::path& path) {
  if (!file.bytes().starts_with("\177ELF"))
    throw experiment_error(
        path,
        "is not a shared library; expected one that CMake's add_library(… MODULE …) has built");
  std::vector<Stamp> stamps = read_stamps(file.bytes());
  if (stamps.empty())
    throw experiment_error(path,
                           "has no part for Pipewright; expected a source with "
                           "PIPEWRIGHT_SCHEME(…), PIPEWRIGHT_MODEL(…) or another of these in it");
  return stamps;
}

/// A program without LibTorch becomes the one with it at the first call of a function of LibTorch.
void need_libtorch(const std::vector<Stamp>& stamps) {
  const auto with = [](const Stamp& stamp) {
    return stamp.libtorch != PIPEWRIGHT_WITHOUT_LIBTORCH;
  };
  if (std::ranges::any_of(stamps, with)) static_cast<void>(at::get_num_threads());
}

const std::filesystem::path* loading = nullptr;  // by the program's first thread

std::string thrown_at_start(const std::exception& thrown) {
  return concat("cannot be loaded: its start threw an exception: ", first_line(thrown));
}

/// Loaders whose frames no exception passes through end the program instead.
[[noreturn]] void end_loading() {
  try {
    if (const auto thrown = std::current_exception()) std::rethrow_exception(thrown);
  } catch (const std::exception& thrown) {
    const Error error(ErrorKind::Experiment, thrown_at_start(thrown), loading->string());
    print_error("%s\n", error.what());
    std::_Exit(static_cast<int>(error.kind()));
  } catch (...) {
  }
  std::abort();
}

/// While it lives, an exception that ends the program is the fault of the plugin that is loaded.
class LoadingGuard {
 public:
  explicit LoadingGuard(const std::filesystem::path& path)
      : before_(std::set_terminate(end_loading)) {
    loading = &path;
  }
  ~LoadingGuard() {
    std::set_terminate(before_);
    loading = nullptr;
  }
  LoadingGuard(const LoadingGuard&) = delete;
  LoadingGuard& operator=(const LoadingGuard&) = delete;

 private:
  std::terminate_handler before_;
};

/// Loads it. Its static constructors run, and what they throw is the plugin's fault.
void load_guarded(PluginFile& file, const std::filesystem::path& path) {
  const LoadingGuard guard(path);
  bool loaded = false;
  try {
    loaded = file.load();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& thrown) {
    throw experiment_error(path, thrown_at_start(thrown));
  }
  if (!loaded) throw experiment_error(path, "cannot be loaded: ", file.loader_message());
}

}  // namespace

void load_plugin(const std::filesystem::path& path) {
  PluginFile file(path);
  if (std::ranges::count(plugins(), file.path(), &Plugin::path) > 0) return;
  const std::vector<Stamp> stamps = stamps_of(file, path);
  std::vector<PluginPart> parts = checked_parts(path, stamps);
  need_libtorch(stamps);
  load_guarded(file, path);
  if (file.changed())
    throw experiment_error(path, "was replaced or written to while it was loaded; try again");
  for (const PluginPart& part : parts) {
    const PluginKind& kind = *find_plugin_kind(part.kind);
    if (!kind.knows(part.name))
      throw experiment_error(path, "did not register its ", part.kind, " '", part.name,
                             "'; link it to Pipewright::pipewright, the shared library");
    kind.guard(kind, part.name, file.path());
  }
  plugins().push_back({file.path(), sha256(file.bytes()), std::move(parts)});
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
