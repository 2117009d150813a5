// SPDX-License-Identifier: Apache-2.0
#include "core/processes/start_watch.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "core/base/wording.h"

namespace pipewright {
namespace {

namespace fs = std::filesystem;

/// Longest time between two looks that counts: in a longer one the launcher itself was stopped.
constexpr auto kLongestLook = std::chrono::seconds(1);
/// The variable in which Open MPI tells a process its rank.
constexpr std::string_view kRank = "OMPI_COMM_WORLD_RANK=";

std::string content_of(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> children;
  std::error_code failed;
  for (fs::directory_iterator thread(fs::path("/proc") / std::to_string(parent) / "task", failed),
       end;
       !failed && thread != end; thread.increment(failed)) {
    std::istringstream numbers(content_of(thread->path() / "children"));
    for (pid_t child = 0; numbers >> child;) children.push_back(child);
  }
  return children;
}

/// The rank in the environment of a process; nothing before mpirun has made it our program.
std::optional<int> rank_of(pid_t process) {
  const std::string all = content_of(fs::path("/proc") / std::to_string(process) / "environ");
  for (std::string_view rest = all; !rest.empty();) {
    const std::string_view variable = rest.substr(0, rest.find('\0'));
    rest.remove_prefix(std::min(rest.size(), variable.size() + 1));
    if (!variable.starts_with(kRank)) continue;
    const std::string_view number = variable.substr(kRank.size());
    int rank = 0;
    if (std::from_chars(number.data(), number.data() + number.size(), rank).ec == std::errc())
      return rank;
  }
  return std::nullopt;
}

/// The state of a process as in proc(5); Z if there is none.
char state_of(pid_t process) {
  const std::string stat = content_of(fs::path("/proc") / std::to_string(process) / "stat");
  const std::size_t end = stat.rfind(')');
  return end != std::string::npos && end + 2 < stat.size() ? stat[end + 2] : 'Z';
}

std::string workers_text(const std::vector<int>& ranks) {
  std::vector<std::string> numbers;
  for (const int rank : ranks) numbers.push_back(std::to_string(rank));
  return concat(ranks.size() == 1 ? "that of worker " : "those of workers ", join(numbers, ", "));
}

}  // namespace

std::vector<StartedProcess> started_by(pid_t mpirun) {
  std::vector<StartedProcess> started;
  for (const pid_t child : children_of(mpirun))
    if (const auto rank = rank_of(child)) started.push_back({*rank, child, state_of(child)});
  return started;
}

StartWatch::StartWatch(int processes, std::string host, StartPatience patience)
    : processes_(processes), host_(std::move(host)), patience_(patience) {}

void StartWatch::hear(const StartWord& word) {
  begun_.insert(word.rank);
  if (word.step == StartWord::Step::Speaks) team_speaks_ = true;
  if (word.step == StartWord::Step::Said) said_ = true;
  if (word.step == StartWord::Step::Ends) ending_ = true;
}

void StartWatch::look(const std::vector<StartedProcess>& now, TimePoint time) {
  if (lost() || late() || stopped() > 0 || (over() && !ending())) return;
  const Duration since = std::min<Duration>(time - last_look_.value_or(time), kLongestLook);
  last_look_ = time;
  for (const StartedProcess& each : now)
    if (each.state != 'Z' && each.state != 'X') note(each, since);
  std::vector<Lost> lost;
  for (const auto& [rank, seen] : seen_) {
    const bool lives = std::ranges::any_of(now, [&](const StartedProcess& each) {
      return each.process == seen.process && each.state != 'Z' && each.state != 'X';
    });
    if (!lives) lost.push_back({rank, seen.process, false});
    if (lives && seen.stopped >= patience_.stopped) lost.push_back({rank, seen.process, true});
  }
  if (!lost.empty()) return lose(lost);
  if (over()) return;
  if (!begun_.empty()) waited_ += since;
  late_ = waited_ >= patience_.connecting;
}

void StartWatch::lose(const std::vector<Lost>& lost) {
  const auto stopped = std::ranges::find(lost, true, &Lost::stopped);
  const bool none_before = !lost_;
  if (none_before) lost_ = lost.front();
  if (stopped != lost.end()) lost_ = *stopped;  // those that have ended may have ended regularly
  // Where several are lost, or one was never seen, mpirun may have ended the others.
  const bool known = lost.size() == 1 && seen_.size() == static_cast<std::size_t>(processes_);
  if (none_before || lost_->stopped) lost_->first = known || lost_->stopped;
}

void StartWatch::note(const StartedProcess& each, Duration since_last_look) {
  Seen& seen = seen_[each.rank];
  seen.process = each.process;
  seen.stopped = each.state == 'T' ? seen.stopped + since_last_look : Duration{0};
}

std::vector<int> StartWatch::without_word() const {
  std::vector<int> ranks;
  for (int rank = 0; rank < processes_; ++rank)
    if (!begun_.contains(rank)) ranks.push_back(rank);
  return ranks;
}

Error StartWatch::error(int code) const {
  const auto seconds = [](Duration time) {
    return std::chrono::duration_cast<std::chrono::seconds>(time).count();
  };
  if (late_) {
    const std::vector<int> absent = without_word();
    return Error(
        ErrorKind::Worker,
        concat("MPI has not connected the processes of ", counted(processes_, "worker"), " within ",
               seconds(patience_.connecting), " s",
               absent.empty() ? std::string()
                              : concat(": ", workers_text(absent),
                                       absent.size() == 1 ? " has" : " have", " not begun")));
  }
  const std::string how = lost_ && lost_->stopped
                              ? concat("was stopped for ", seconds(patience_.stopped), " s")
                          : code > 128 ? std::string("was killed")
                                       : concat("ended with code ", code);
  const std::string what =
      concat(how, ending_ ? " when the run had been trained" : " while MPI connected the workers");
  if (lost_ && lost_->first)
    return Error(ErrorKind::Worker,
                 concat("its process ", lost_->process, " on ", host_, " ", what),
                 concat("worker ", lost_->rank));
  if (const auto unseen = only_unseen(); unseen && !lost_)
    return Error(ErrorKind::Worker, concat("its process ", what), concat("worker ", *unseen));
  return Error(ErrorKind::Worker, concat("a process of the run ", what));
}

std::optional<int> StartWatch::only_unseen() const {
  std::optional<int> found;
  for (int rank = 0; rank < processes_; ++rank) {
    if (seen_.contains(rank) || begun_.contains(rank)) continue;
    if (found) return std::nullopt;
    found = rank;
  }
  return found;
}

}  // namespace pipewright
