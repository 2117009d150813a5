// SPDX-License-Identifier: Apache-2.0
/// Child processes. Other programs are started with posix_spawn from a list of arguments, so no
/// shell interprets the arguments and none of our code runs between fork and exec. A process of one
/// thread can also fork copies of itself.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace pipewright {

/// How a child is started. SIGINT, SIGQUIT, SIGTERM, SIGPIPE and SIGCHLD have their default action
/// in the child even if this process ignores them. SIGHUP stays ignored if it is: `nohup` means the
/// children, too.
struct ChildSettings {
  /// Environment variables that are added to ours, or replace ours of the same name.
  std::vector<std::pair<std::string, std::string>> environment = {};
  int input = -1;                     ///< descriptor for its stdin; -1: /dev/null
  int output = -1;                    ///< descriptor for its stdout and stderr; -1: `log`
  std::filesystem::path log = {};     ///< file its stdout and stderr are appended to; empty: ours
  bool own_group = false;             ///< a process group of its own, which Ctrl-C does not reach
  std::optional<sigset_t> mask = {};  ///< signals that it blocks; none: those of this thread
  /// A signal that the system sends it when this thread ends, even if the process is killed; 0:
  /// none. A program gets it only where util-linux (setpriv) is installed.
  int at_our_end = 0;
};

/// How a child ended.
struct ChildEnd {
  int code = -1;   ///< exit code; -1 if a signal killed it
  int signal = 0;  ///< the signal that killed it, or 0
};

/// A running child. One thread at a time may use it. The destructor kills a child that has not
/// ended.
class ChildProcess {
 public:
  /// Starts `arguments[0]`, which is searched for on the PATH. Throws Error{Experiment} if there is
  /// no such program, Error{Worker} if the system refuses for another reason.
  explicit ChildProcess(const std::vector<std::string>& arguments,
                        const ChildSettings& settings = {});
  /// A copy of this process that performs `work`, which must not throw, and exits with the code
  /// that it returns; destructors of static objects do not run. Needs is_single_threaded(): a lock
  /// that another thread held would stay locked in the copy. Throws Error{Data} if the log cannot
  /// be opened, Error{Worker} if the system refuses a process.
  static ChildProcess forked(const std::function<int()>& work, const ChildSettings& settings = {});
  ~ChildProcess();
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;

  pid_t pid() const { return pid_; }
  /// How the child ended, or nullopt while it runs; does not wait.
  std::optional<ChildEnd> poll();
  ChildEnd wait();
  /// Sends a signal, if the child has not ended.
  void signal(int number) const;

 private:
  ChildProcess() = default;
  std::optional<ChildEnd> reaped(int options);

  pid_t pid_ = 0;
  std::optional<ChildEnd> end_;
};

/// Makes this process another program, which keeps its number, standard streams and environment.
/// Throws what the constructor of ChildProcess throws.
[[noreturn]] void become(const std::filesystem::path& program,
                         const std::vector<std::string>& arguments);

/// Whether this process has no thread but the one that asks.
bool is_single_threaded();

/// The file that a program of this name is found at on the PATH; empty if there is none.
std::filesystem::path program_on_path(const std::string& name);

/// The output of a program, stdout and stderr together, and how it ended.
struct ChildOutput {
  ChildEnd end;
  std::string text;
};
/// Runs a program to its end and keeps the first `limit` bytes of its output. Throws what the
/// constructor of ChildProcess throws.
ChildOutput output_of(const std::vector<std::string>& arguments, std::size_t limit);

/// As above; the program reads `input` from its stdin.
ChildOutput output_of(const std::vector<std::string>& arguments, std::size_t limit,
                      const std::string& input);

}  // namespace pipewright
