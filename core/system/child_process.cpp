// SPDX-License-Identifier: Apache-2.0
#include "core/system/child_process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "core/base/error.h"
#include "core/system/descriptor.h"
#include "core/system/machine_limits.h"

extern char** environ;

namespace pipewright {
namespace {

[[noreturn]] void refuse(const std::string& program, int error) {
  throw Error(error == ENOENT ? ErrorKind::Experiment : ErrorKind::Worker,
              concat("cannot start ", program, ": ", errno_text(error)));
}

/// Signals that a child does not inherit as ignored.
constexpr std::array kFreshSignals{SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGCHLD};
constexpr int kLogFlags = O_WRONLY | O_CREAT | O_APPEND;

/// File actions and attributes for posix_spawn, freed with the object.
class SpawnSettings {
 public:
  explicit SpawnSettings(const ChildSettings& settings) {
    posix_spawn_file_actions_init(&files_);
    if (settings.input >= 0)
      posix_spawn_file_actions_adddup2(&files_, settings.input, 0);
    else
      posix_spawn_file_actions_addopen(&files_, 0, "/dev/null", O_RDONLY, 0);
    if (settings.output >= 0)
      posix_spawn_file_actions_adddup2(&files_, settings.output, 1);
    else if (!settings.log.empty())
      posix_spawn_file_actions_addopen(&files_, 1, settings.log.c_str(), kLogFlags, 0644);
    if (settings.output >= 0 || !settings.log.empty())
      posix_spawn_file_actions_adddup2(&files_, 1, 2);

    sigset_t fresh;
    sigemptyset(&fresh);
    for (const int signal : kFreshSignals) sigaddset(&fresh, signal);
    short flags = POSIX_SPAWN_SETSIGDEF;
    posix_spawnattr_init(&attributes_);
    posix_spawnattr_setsigdefault(&attributes_, &fresh);
    if (settings.mask) {
      posix_spawnattr_setsigmask(&attributes_, &*settings.mask);
      flags |= POSIX_SPAWN_SETSIGMASK;
    }
    if (settings.own_group) {
      posix_spawnattr_setpgroup(&attributes_, 0);
      flags |= POSIX_SPAWN_SETPGROUP;
    }
    posix_spawnattr_setflags(&attributes_, flags);
  }
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&files_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  const posix_spawn_file_actions_t* files() const { return &files_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t files_;
  posix_spawnattr_t attributes_;
};

/// The texts as a null-terminated array for C. It points into `texts`, which must outlive it.
std::vector<char*> words_of(const std::vector<std::string>& texts) {
  std::vector<char*> words;
  for (const std::string& text : texts) words.push_back(const_cast<char*>(text.c_str()));
  words.push_back(nullptr);
  return words;
}

/// Our environment with `additions`, which replace variables of the same name.
std::vector<std::string> environment_with(
    const std::vector<std::pair<std::string, std::string>>& additions) {
  std::vector<std::string> all;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const std::string_view name = text.substr(0, text.find('='));
    if (std::ranges::none_of(additions, [&](const auto& added) { return added.first == name; }))
      all.emplace_back(text);
  }
  for (const auto& [name, value] : additions) all.push_back(concat(name, "=", value));
  return all;
}

/// Puts an open descriptor in the place of another; false if it is not open.
bool put(int from, int in_place_of) {
  return from >= 0 && ::dup2(from, in_place_of) == in_place_of;
}

/// The command of a program that gets a signal at our end: posix_spawn cannot ask for one, so
/// setpriv does, which then becomes the program.
std::vector<std::string> with_signal_at_our_end(const std::vector<std::string>& arguments,
                                                int signal) {
  if (signal == 0 || program_on_path("setpriv").empty()) return arguments;
  std::vector<std::string> command{"setpriv", "--pdeathsig", ::sigabbrev_np(signal), "--"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

/// Gives a forked child its settings, as SpawnSettings does for a program. `output`: its standard
/// output and error; -1: ours. `parent`: the process that has forked it.
bool take_on(const ChildSettings& settings, int output, pid_t parent) {
  if (settings.at_our_end != 0) {
    ::prctl(PR_SET_PDEATHSIG, settings.at_our_end);
    if (::getppid() != parent) return false;  // it has ended before we could ask
  }
  if (settings.own_group) ::setpgid(0, 0);
  for (const int signal : kFreshSignals) std::signal(signal, SIG_DFL);
  if (settings.mask) ::sigprocmask(SIG_SETMASK, &*settings.mask, nullptr);
  for (const auto& [name, value] : settings.environment) ::setenv(name.c_str(), value.c_str(), 1);
  const Descriptor nothing("/dev/null", O_RDONLY);
  if (!put(settings.input >= 0 ? settings.input : nothing.number(), 0)) return false;
  return output < 0 || (put(output, 1) && put(1, 2));
}

}  // namespace

ChildProcess ChildProcess::forked(const std::function<int()>& work, const ChildSettings& settings) {
  constexpr int kNotStarted = 127;  // as shells and posix_spawn have it
  int output = settings.output;
  Descriptor log;
  if (output < 0 && !settings.log.empty()) {
    log = Descriptor(settings.log, kLogFlags);
    output = log.number();
    if (output < 0) refuse_file(settings.log, "cannot open", errno);
  }
  std::fflush(nullptr);  // or both processes would print what is buffered
  const pid_t parent = ::getpid();
  ChildProcess child;
  child.pid_ = ::fork();
  if (child.pid_ < 0) {
    child.pid_ = 0;
    refuse("a copy of this process", errno);
  }
  if (child.pid_ > 0) return child;
  const int code = take_on(settings, output, parent) ? work() : kNotStarted;
  std::fflush(nullptr);
  ::_exit(code);
}

void become(const std::filesystem::path& program, const std::vector<std::string>& arguments) {
  std::fflush(nullptr);
  ::execv(program.c_str(), words_of(arguments).data());
  refuse(program.string(), errno);
}

bool is_single_threaded() {
  std::error_code failed;
  std::filesystem::directory_iterator thread("/proc/self/task", failed), end;
  return !failed && std::distance(thread, end) == 1;
}

ChildProcess::ChildProcess(const std::vector<std::string>& arguments,
                           const ChildSettings& settings) {
  PIPEWRIGHT_CHECK(!arguments.empty());
  const std::vector<std::string> variables = environment_with(settings.environment);
  const std::vector<std::string> command = with_signal_at_our_end(arguments, settings.at_our_end);
  const std::vector<char*> words = words_of(command), environment = words_of(variables);
  const SpawnSettings spawn(settings);
  const int error = ::posix_spawnp(&pid_, words[0], spawn.files(), spawn.attributes(), words.data(),
                                   environment.data());
  if (error != 0) refuse(arguments[0], error);
}

ChildProcess::~ChildProcess() {
  if (pid_ == 0 || end_) return;
  signal(SIGKILL);
  wait();
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, 0)), end_(std::exchange(other.end_, std::nullopt)) {}

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(end_, other.end_);
  return *this;
}

std::optional<ChildEnd> ChildProcess::reaped(int options) {
  if (end_) return end_;
  int status = 0;
  pid_t ended = 0;
  do ended = ::waitpid(pid_, &status, options);
  while (ended < 0 && errno == EINTR);
  if (ended == 0) return std::nullopt;
  end_ = ChildEnd{};  // stays as it is where waitpid() fails
  if (ended == pid_ && WIFEXITED(status)) end_->code = WEXITSTATUS(status);
  if (ended == pid_ && WIFSIGNALED(status)) end_->signal = WTERMSIG(status);
  return end_;
}

std::optional<ChildEnd> ChildProcess::poll() {
  return reaped(WNOHANG);
}

ChildEnd ChildProcess::wait() {
  return *reaped(0);
}

void ChildProcess::signal(int number) const {
  if (pid_ != 0 && !end_) ::kill(pid_, number);
}

std::filesystem::path program_on_path(const std::string& name) {
  const char* const path = std::getenv("PATH");
  for (const std::string& folder : split(path != nullptr ? path : "/bin:/usr/bin", ':')) {
    const std::filesystem::path file = std::filesystem::path(folder.empty() ? "." : folder) / name;
    std::error_code none;
    if (std::filesystem::is_regular_file(file, none) && ::access(file.c_str(), X_OK) == 0)
      return file;
  }
  return {};
}

namespace {

ChildOutput collected(const std::vector<std::string>& arguments, std::size_t limit, int input) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) refuse(arguments.at(0), errno);
  const Descriptor out(ends[0]);
  Descriptor in(ends[1]);
  ChildProcess child(arguments, {.input = input, .output = in.number()});
  in.close();
  ChildOutput output;
  char buffer[4096];
  for (;;) {
    const ssize_t count = ::read(out.number(), buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    const std::size_t room = limit - std::min(limit, output.text.size());
    output.text.append(buffer, std::min(static_cast<std::size_t>(count), room));
  }
  output.end = child.wait();
  return output;
}

}  // namespace

ChildOutput output_of(const std::vector<std::string>& arguments, std::size_t limit) {
  return collected(arguments, limit, -1);
}

ChildOutput output_of(const std::vector<std::string>& arguments, std::size_t limit,
                      const std::string& input) {
  // The input is a file in memory and not a pipe: if the program does not read all of it, no
  // SIGPIPE ends us.
  const Descriptor file(::memfd_create("input", MFD_CLOEXEC));
  if (file.number() < 0) refuse(arguments.at(0), errno);
  for (std::size_t written = 0; written < input.size();) {
    const ssize_t count = ::write(file.number(), input.data() + written, input.size() - written);
    if (count < 0 && errno != EINTR) refuse(arguments.at(0), errno);
    if (count > 0) written += static_cast<std::size_t>(count);
  }
  ::lseek(file.number(), 0, SEEK_SET);
  return collected(arguments, limit, file.number());
}

}  // namespace pipewright
