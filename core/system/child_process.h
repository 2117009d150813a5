/// Another program as a child of this process: started with posix_spawn from a list of arguments,
/// so no shell reads them and nothing of ours runs between fork and exec.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace pipewright {

/// How a child is started. Signals that this process ignores are not ignored by the child, but for
/// SIGHUP, which `nohup` means for both.
struct ChildSettings {
  /// Variables besides ours; they replace ours of the same name.
  std::vector<std::pair<std::string, std::string>> environment = {};
  int input = -1;                     ///< descriptor that the child reads; -1: it reads nothing
  int output = -1;                    ///< descriptor for what it prints on both; -1: as ours
  std::filesystem::path log = {};     ///< file that what it prints is appended to, instead
  bool own_group = false;             ///< a process group, which Ctrl-C does not reach
  std::optional<sigset_t> mask = {};  ///< signals that it blocks; none: as this thread
};

/// How a child ended.
struct ChildEnd {
  int code = -1;   ///< exit code; -1 if a signal killed it
  int signal = 0;  ///< that killed it
};

/// Used by one thread at a time. A child that has not ended is killed with the object.
class ChildProcess {
 public:
  /// Starts `arguments[0]`, which is looked for on the PATH. Throws Error{Worker} where the system
  /// refuses, Error{Experiment} where there is no such program.
  explicit ChildProcess(const std::vector<std::string>& arguments,
                        const ChildSettings& settings = {});
  ~ChildProcess();
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;

  pid_t pid() const { return pid_; }
  /// How the child ended, if it has; does not wait.
  std::optional<ChildEnd> poll();
  ChildEnd wait();
  /// Sends a signal, if the child has not ended.
  void signal(int number) const;

 private:
  std::optional<ChildEnd> reaped(int options);

  pid_t pid_ = 0;
  std::optional<ChildEnd> end_;
};

/// Where a program is that the PATH is searched for; empty: nowhere.
std::filesystem::path program_on_path(const std::string& name);

/// What a program printed, stdout and stderr together, and how it ended.
struct ChildOutput {
  ChildEnd end;
  std::string text;
};
/// Runs a program to its end. Of its output the first `limit` bytes are kept. Throws as
/// ChildProcess.
ChildOutput output_of(const std::vector<std::string>& arguments, std::size_t limit);

/// The same for a program that reads `input`.
ChildOutput output_of(const std::vector<std::string>& arguments, std::size_t limit,
                      const std::string& input);

}  // namespace pipewright
