#include "core/experiment/sweep_processes.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "core/base/error.h"

extern char** environ;

namespace pipewright {
namespace {

/// What posix_spawn is told about files and signals; freed with the object.
class SpawnSettings {
 public:
  SpawnSettings(const std::filesystem::path& log, const sigset_t& unblocked) {
    posix_spawn_file_actions_init(&files_);
    posix_spawn_file_actions_addopen(&files_, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files_, 1, log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
    posix_spawn_file_actions_adddup2(&files_, 1, 2);
    sigset_t fresh;
    sigemptyset(&fresh);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) sigaddset(&fresh, signal);
    posix_spawnattr_init(&attributes_);
    posix_spawnattr_setsigdefault(&attributes_, &fresh);
    posix_spawnattr_setsigmask(&attributes_, &unblocked);
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setflags(
        &attributes_, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
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

bool is_ignored(int signal) {
  struct sigaction action {};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

SweepProcesses::SweepProcesses() {
  sigemptyset(&watched_);
  for (const int signal : {SIGINT, SIGTERM}) sigaddset(&watched_, signal);
  if (!is_ignored(SIGHUP)) sigaddset(&watched_, SIGHUP);  // nohup means it
  std::signal(SIGCHLD, SIG_DFL);  // children of an ignored SIGCHLD could not be waited for
  sigaddset(&watched_, SIGCHLD);
  sigprocmask(SIG_BLOCK, &watched_, &before_);
}

SweepProcesses::~SweepProcesses() {
  for (const pid_t child : children_) {
    ::kill(child, SIGKILL);
    while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  const timespec none{};
  sigset_t ended;
  sigemptyset(&ended);
  sigaddset(&ended, SIGCHLD);
  while (sigtimedwait(&ended, nullptr, &none) > 0) {
  }
  sigprocmask(SIG_SETMASK, &before_, nullptr);
}

pid_t SweepProcesses::start(const std::vector<std::string>& arguments,
                            const std::filesystem::path& log) {
  PIPEWRIGHT_CHECK(!arguments.empty());
  std::vector<char*> texts;
  for (const std::string& argument : arguments)
    texts.push_back(const_cast<char*>(argument.c_str()));
  texts.push_back(nullptr);
  const SpawnSettings settings(log, before_);
  pid_t child = 0;
  const int failed = ::posix_spawnp(&child, texts[0], settings.files(), settings.attributes(),
                                    texts.data(), environ);
  if (failed != 0)
    throw Error(ErrorKind::Worker, concat("cannot start ", arguments[0], ": ",
                                          std::string_view(std::strerror(failed))));
  children_.push_back(child);
  return child;
}

bool SweepProcesses::reap(Event& event) {
  for (std::size_t i = 0; i < children_.size(); ++i) {
    int status = 0;
    const pid_t child = children_[i];
    const pid_t ended = ::waitpid(child, &status, WNOHANG);
    if (ended == 0 || (ended < 0 && errno == EINTR)) continue;
    children_.erase(children_.begin() + static_cast<std::ptrdiff_t>(i));
    event = {.kind = Event::Kind::Ended, .child = child, .exit_code = -1};
    if (ended == child && WIFEXITED(status)) event.exit_code = WEXITSTATUS(status);
    if (ended == child && WIFSIGNALED(status)) event.signal = WTERMSIG(status);
    return true;
  }
  return false;
}

SweepProcesses::Event SweepProcesses::wait(std::chrono::milliseconds at_most) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end = Clock::now() + at_most;
  Event event;
  sigset_t stops = watched_;
  sigdelset(&stops, SIGCHLD);
  for (;;) {
    // Before children: those that the same signal has killed are known to be interrupted then.
    const timespec none{};
    if (const int signal = sigtimedwait(&stops, nullptr, &none); signal > 0)
      return {.kind = Event::Kind::Signal, .child = 0, .exit_code = 0, .signal = signal};
    if (reap(event)) return event;
    const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(end - Clock::now());
    if (left.count() <= 0) return event;
    timespec time{};
    time.tv_sec = static_cast<std::time_t>(left.count() / 1'000'000'000);
    time.tv_nsec = static_cast<long>(left.count() % 1'000'000'000);
    // A child that ends between reap() and here has left its SIGCHLD pending: nothing is missed.
    const int signal = sigtimedwait(&watched_, nullptr, &time);
    if (signal > 0 && signal != SIGCHLD)
      return {.kind = Event::Kind::Signal, .child = 0, .exit_code = 0, .signal = signal};
  }
}

void SweepProcesses::interrupt() const {
  for (const pid_t child : children_) ::kill(child, SIGINT);
}

}  // namespace pipewright
