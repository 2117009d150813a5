// SPDX-License-Identifier: Apache-2.0
// A schedule from a file, in one of two CSV formats.
//
// One has an action a line, with the weights that it reads, as `schedule --csv` writes them: see
// core/schedule/action_list.h. Whenever the pipeline begins anew, it begins as the file does. If it
// then needs more mini-batches than the file has, the middle of the file is repeated; if fewer, the
// later ones are left out.
//
// The other is that which torch.distributed.pipelining writes and reads: a row per worker (rank), a
// cell per step, empty cells for idle steps. A cell has stage, operation and micro-batch: "2F0" is
// a forward, "2B0" a backward, "2I0" and "2W0" are its halves (gradient of the inputs, of the
// weights); "(0F3;3B1)OVERLAP_F_B" is a fused pair, or its parts in turn where they are no forward
// beside a backward of another pass. Sends, receives, (un)sharding and
// gradient reductions (SEND_F, RECV_B, UNSHARD, REDUCE_GRAD, …) are ignored, because here they
// follow from the rest. The file describes one mini-batch; each stage updates after its last
// gradient and goes on with the next mini-batch.
#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <map>
#include <optional>

#include "core/base/checksum.h"
#include "core/base/text.h"
#include "core/config/options.h"
#include "core/schedule/action_list.h"
#include "core/schedule/builders.h"
#include "core/schedule/find_loop.h"
#include "core/schedule/invalid_schedule.h"
#include "core/schedule/prove.h"
#include "core/system/file.h"

namespace pipewright {
namespace {

constexpr int kMostStages = 4096;
constexpr std::uint64_t kLargestFile = 1u << 28;  // bytes

struct Operation {
  std::string_view name;
  std::optional<ActionKind> kind;  ///< none: ignored
};
/// A name comes before the names that are a prefix of it.
constexpr std::array<Operation, 11> kOperations = {{{"RESHARD", {}},
                                                    {"REDUCE_GRAD", {}},
                                                    {"RECV_F", {}},
                                                    {"RECV_B", {}},
                                                    {"SEND_F", {}},
                                                    {"SEND_B", {}},
                                                    {"UNSHARD", {}},
                                                    {"F", ActionKind::Forward},
                                                    {"B", ActionKind::Backward},
                                                    {"I", ActionKind::BackwardInput},
                                                    {"W", ActionKind::BackwardWeight}}};

/// The steps of every worker, and the worker of each stage.
class CsvSchedule {
 public:
  /// `text` is the content of the file at `path`, which messages name.
  CsvSchedule(const std::filesystem::path& path, std::string_view text) : path_(path) {
    std::string_view rest = text;
    while (!rest.empty()) {
      ++line_;
      const std::size_t end = std::min(rest.find('\n'), rest.size());
      std::string_view row = rest.substr(0, end);
      rest.remove_prefix(std::min(end + 1, rest.size()));
      if (row.ends_with('\r')) row.remove_suffix(1);
      if (row.empty() && rest.empty()) break;
      read_row(row);
    }
    check_stages();
  }

  const std::vector<std::vector<PassStep>>& workers() const { return workers_; }
  int microbatches() const { return microbatches_; }
  /// The worker of each stage.
  std::vector<int> placement() const {
    std::vector<int> all;
    for (const auto& [stage, worker] : worker_of_) all.push_back(worker);
    return all;
  }

 private:
  void read_row(std::string_view row) {
    workers_.emplace_back();
    for (std::size_t begin = 0; begin <= row.size();) {
      const std::size_t end = std::min(row.find(',', begin), row.size());
      read_cell(row.substr(begin, end - begin), begin + 1);
      begin = end + 1;
    }
  }

  void read_cell(std::string_view cell, std::size_t column) {
    while (cell.starts_with(' ')) cell.remove_prefix(1), ++column;
    while (cell.ends_with(' ')) cell.remove_suffix(1);
    if (cell.empty()) return;
    constexpr std::string_view kFused = ")OVERLAP_F_B";
    if (!cell.starts_with('(')) return read_action(cell, column);
    if (!cell.ends_with(kFused)) refuse(cell, column);
    std::string_view parts = cell.substr(1, cell.size() - 1 - kFused.size());
    const std::size_t middle = parts.find(';');
    if (middle == std::string_view::npos) refuse(cell, column);
    std::vector<PassStep>& steps = workers_.back();
    const std::size_t first = steps.size();
    read_action(parts.substr(0, middle), column + 1);
    read_action(parts.substr(middle + 1), column + middle + 2);
    if (steps.size() == first + 2)
      steps[first].with_next = may_pair(steps[first], steps[first + 1]);
  }

  void read_action(std::string_view text, std::size_t column) {
    std::string_view rest = text;
    const std::optional<int> stage = number(rest, kMostStages);
    const auto operation = std::ranges::find_if(
        kOperations, [&](const Operation& each) { return rest.starts_with(each.name); });
    if (!stage || operation == kOperations.end()) refuse(text, column);
    rest.remove_prefix(operation->name.size());
    const std::optional<int> microbatch = number(rest, 1 << 20);
    if (!rest.empty() || (operation->kind && !microbatch)) refuse(text, column);
    if (!operation->kind) return;
    const int worker = static_cast<int>(workers_.size()) - 1;
    const auto [known, fresh] = worker_of_.try_emplace(*stage, worker);
    if (known->second != worker)
      fail(column, concat("stage ", *stage, " is on worker ", worker, " here, but on worker ",
                          known->second, " above; each stage needs one worker"));
    microbatches_ = std::max(microbatches_, *microbatch + 1);
    workers_.back().push_back({*operation->kind, *stage, *microbatch});
  }

  static bool may_pair(const PassStep& first, const PassStep& second) {
    const bool same = first.stage == second.stage && first.microbatch == second.microbatch;
    return first.kind == ActionKind::Forward && is_backward(second.kind) && !same;
  }

  static bool looks_like_action(std::string_view text) {
    constexpr std::size_t kLongest = 12;
    return text.size() <= kLongest && std::ranges::all_of(text, [](char c) {
             return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z');
           });
  }

  /// Parses a number below `end` at the front of `text` and removes it; nullopt if there is none.
  static std::optional<int> number(std::string_view& text, int end) {
    int value = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || value < 0 || value >= end || text.starts_with('-')) return {};
    text.remove_prefix(static_cast<std::size_t>(stop - text.data()));
    return value;
  }

  void check_stages() {
    line_ = std::max(1, static_cast<int>(workers_.size()));
    if (worker_of_.empty())
      fail(1, "the file has no action; expected a row per worker with cells such as 2F0 and 2B0");
    const int last = worker_of_.rbegin()->first;
    for (int stage = 0; stage < last; ++stage)
      if (!worker_of_.contains(stage))
        fail(1, concat("the file names stage ", last, " but never stage ", stage,
                       "; expected stages numbered from 0 without gaps"));
    for (std::size_t worker = 0; worker < workers_.size(); ++worker) {
      line_ = static_cast<int>(worker) + 1;
      if (workers_[worker].empty())
        fail(1, "this row is empty, so its worker does nothing; remove it or give it actions");
    }
  }

  /// Quotes the text only if an action precedes it or it looks like one: this may be any file at
  /// all.
  [[noreturn]] void refuse(std::string_view text, std::size_t column) const {
    if (worker_of_.empty() && !looks_like_action(text))
      fail(column, "this is no schedule; expected a row per worker with cells such as 2F0 and 2B0");
    fail(column, concat("'", text,
                        "' is no action; expected a stage, an operation (F, B, I, W) and a "
                        "micro-batch, as in 2F0, or (0F3;3B1)OVERLAP_F_B"));
  }
  [[noreturn]] void fail(std::size_t column, const std::string& message) const {
    throw Error(ErrorKind::Data, concat(path_.string(), ":", line_, ":", column, ": ", message));
  }

  std::filesystem::path path_;
  int line_ = 0;
  int microbatches_ = 0;
  std::vector<std::vector<PassStep>> workers_;
  std::map<int, int> worker_of_;  ///< stage → worker
};

/// A schedule of an action a line, for as many mini-batches as are asked for.
class ListedSchedule {
 public:
  ListedSchedule(const std::filesystem::path& path, std::string_view text)
      : path_(path), list_(read_action_list(text, path)) {}

  const PipelineShape& shape() const { return list_.schedule.shape; }
  const std::vector<int>& auxiliary() const { return list_.schedule.auxiliary; }

  /// Throws InvalidSchedule with the line of the culprit.
  Schedule schedule(const PipelineShape& wanted) const {
    const int minibatches = wanted.minibatches;
    Schedule schedule =
        minibatches <= shape().minibatches ? proved(minibatches) : continued(minibatches);
    schedule.shape = wanted;
    return schedule;
  }

 private:
  Schedule proved(int minibatches) const {
    try {
      return prove(first_minibatches(list_.schedule, minibatches)).schedule;
    } catch (const InvalidSchedule& error) {
      const std::string& message = error.message();  // which begins as the new one will
      throw InvalidSchedule(
          concat(message.substr(message.find(": ") + 2), line_of(error.culprit(), minibatches)),
          error.culprit());
    }
  }

  /// " (order.csv:17)", where an action is to blame.
  std::string line_of(ActionPlace culprit, int minibatches) const {
    if (culprit == kNowhere) return {};
    const auto worker = static_cast<std::size_t>(culprit.first);
    const auto& actions = list_.schedule.workers[worker];
    int left = culprit.second;
    for (std::size_t i = 0; i < actions.size(); ++i)
      if (actions[i].minibatch < minibatches && left-- == 0)
        return concat(" (", path_.string(), ":", list_.lines[worker][i], ")");
    return {};
  }

  /// A loop whose rounds have 1, 2, 3, 4, 6 or 12 mini-batches reaches every number that differs by
  /// a multiple of 12 from one that the file has.
  Schedule continued(int minibatches) const {
    constexpr int kRounds = 12;
    const int most = shape().minibatches - (shape().minibatches - minibatches % kRounds) % kRounds;
    const auto loop =
        most < 1 ? std::nullopt : find_loop([&](int count) { return first(count); }, most);
    if (!loop)
      throw Error(ErrorKind::Experiment,
                  concat("the schedule in ", path_.string(), " has ", shape().minibatches,
                         " mini-batches, ", minibatches,
                         " are needed, and its middle does not show how to go on; expected a file "
                         "with more of them, such as `pipewright schedule --minibatches 96 --csv` "
                         "writes, in which every 1, 2, 3, 4, 6 or 12 mini-batches are alike"));
    const int once = loop->schedule.shape.minibatches;
    return unrolled(loop->schedule, *loop->loop,
                    1 + (minibatches - once) / loop->loop->step.minibatches);
  }

  Schedule first(int minibatches) const {
    if (minibatches > shape().minibatches)
      throw Error(ErrorKind::Experiment, concat(path_.string(), " has fewer mini-batches"));
    return first_minibatches(list_.schedule, minibatches);
  }

  std::filesystem::path path_;
  ActionList list_;
};

/// Reads the file once, with the experiment, so that later edits do not change a running training.
/// The file's digest is a resolved option, so an experiment with other content is another
/// experiment.
class FromCsv final : public Scheme {
 public:
  explicit FromCsv(Options& options)
      : path_(options.required_path("file",
                                    "CSV file: an action a line with its weights, as `schedule "
                                    "--csv` writes them; or a row per worker, whose cells are "
                                    "stage, operation and micro-batch: 2F0, 2B0, 2I0, 2W0.")) {
    const std::string digest = path_.empty() ? "" : read();
    const std::string expected =
        options.text("sha256", digest,
                     "Expected SHA-256 of the file, which resolved experiments record; another "
                     "content is refused. Default: that of the file.");
    if (!fault_ && expected != digest)
      options.problem("sha256",
                      concat("is not that of ",
                             path_.empty() ? "a file: scheme.file is missing" : path_.string(),
                             digest.empty() ? "" : concat(", which is ", digest),
                             "; leave sha256 out to take the file as it is now"));
  }

  std::vector<int> placement(int stages) const override {
    if (path_.empty()) return {};
    check_stages(stages);
    return listed_ ? listed_->shape().placement : file_->placement();
  }

  std::vector<std::vector<int>> replica_placement(int stages, int replicas) const override {
    if (path_.empty()) return {};
    check_stages(stages);
    if (!listed_ || replicas != listed_->shape().replicas) return {};
    return listed_->shape().replica_placement;
  }

  std::vector<int> auxiliary_sites(int stages) const override {
    if (path_.empty()) return {};
    check_stages(stages);
    return listed_ ? listed_->auxiliary() : std::vector<int>();
  }

  bool repeats() const override { return listed_.has_value(); }

  Schedule schedule(const PipelineShape& shape) const override {
    if (path_.empty()) return {};  // recorded as a problem by required_path()
    PipelineShape placed = shape;
    const std::vector<int> placement = this->placement(shape.stages);
    if (placed.placement.empty()) placed.placement = placement;
    if (placed.placement != placement)
      throw Error(ErrorKind::Experiment,
                  concat("pipeline.placement names other workers than the rows of ", path_.string(),
                         "; leave it out"));
    check(shape.slices > 1 ? "microbatches times pipeline.slices" : "microbatches",
          shape.microbatches, listed_ ? listed_->shape().microbatches : file_->microbatches());
    if (!listed_) return schedule_of_workers(placed, file_->workers());
    check("replicas", shape.replicas, listed_->shape().replicas);
    placed.replica_placement = listed_->shape().replica_placement;
    return listed_->schedule(placed);
  }

 private:
  /// Reads the file and returns its digest, or "" if it cannot be read. The error is thrown when a
  /// schedule is asked for.
  std::string read() {
    std::string text;
    try {
      text = read_file(path_, kLargestFile);
    } catch (const Error& error) {  // read_experiment() shows the message only
      fault_.emplace(error.kind(), concat(path_.string(), ": ", error.message()));
      return {};
    }
    try {
      if (is_action_list(text))
        listed_.emplace(path_, text);
      else
        file_.emplace(path_, text);
    } catch (const Error& error) {
      fault_.emplace(error.kind(), error.what());
    }
    return sha256(text);
  }

  void check_stages(int stages) const {
    if (fault_) throw *fault_;
    check("stages", stages,
          listed_ ? listed_->shape().stages : static_cast<int>(file_->placement().size()));
  }

  void check(const char* option, int wanted, int there) const {
    if (wanted != there)
      throw Error(ErrorKind::Experiment,
                  concat("pipeline.", option, " is ", wanted, "; the schedule in ", path_.string(),
                         " has ", there));
  }

  std::filesystem::path path_;
  std::optional<ListedSchedule> listed_;  ///< one of the two, unless there is a fault
  std::optional<CsvSchedule> file_;
  std::optional<Error> fault_;
};

}  // namespace

PIPEWRIGHT_SCHEME(
    csv_schedule, FromCsv,
    "A schedule from a CSV file: actions and weights, or as torch.distributed.pipelining "
    "writes them.")

}  // namespace pipewright
