// SPDX-License-Identifier: Apache-2.0
#include "core/cost/pipedream_partition.h"

#include <algorithm>
#include <span>
#include <utility>

#include "core/base/as_size.h"
#include "core/base/error.h"
#include "core/base/wording.h"
#include "core/cost/cost.h"
#include "core/system/machine_limits.h"

namespace pipewright {
namespace {

constexpr double kMostWorkers = 1e6;
/// The most steps of the dynamic programme, which take some minutes.
constexpr double kMostSteps = 1e12;
constexpr double kStepsPerSecond = 2e9;  // on one core, roughly

/// The best plans for runs of consecutive layers on 1, 2, … units of one level. On the topmost
/// level only the runs that begin with the first layer are needed.
class Level {
 public:
  /// `below`: the level that one unit of this level consists of; null if a unit is a single worker.
  Level(const Profile& profile, const PipeDreamRules& rules, std::size_t level, int inner_workers,
        const Level* below)
      : profile_(profile),
        rules_(rules),
        units_(rules.levels[level].units),
        bandwidth_(rules.levels[level].bandwidth),
        inner_workers_(inner_workers),
        below_(below),
        n_(profile.layers.size()),
        begins_(level + 1 == rules.levels.size() ? 1 : n_),
        width_(as_size(units_ + 1)),
        weights_(n_ + 1, 0),
        compute_(n_ + 1, 0),
        first_compute_(n_ + 1, 0),
        seconds_(begins_ * (n_ + 1) * width_, std::numeric_limits<double>::infinity()) {
    for (std::size_t i = 0; i < n_; ++i) {
      const LayerCost& layer = profile.layers[i];
      weights_[i + 1] = weights_[i] + static_cast<double>(layer.parameter_bytes);
      compute_[i + 1] = compute_[i] + rules.microbatches * (layer.forward + layer.backward);
      const SentGradient unsent = sent_gradient(std::span(profile.layers).first(i + 1));
      first_compute_[i + 1] = compute_[i + 1] - rules.microbatches * unsent.backward;
    }
    std::vector<double> last_stages(n_ * width_);
    for (std::size_t end = 1; end <= n_; ++end) {
      for (std::size_t split = 0; split < end; ++split)
        for (int m = 1; m <= units_; ++m)
          last_stages[split * width_ + as_size(m)] = last_stage(split, end, m);
      for (std::size_t begin = 0; begin < std::min(begins_, end); ++begin)
        find(begin, end, last_stages);
    }
  }

  /// Predicted seconds per mini-batch of layers [begin, end) on so many units.
  double seconds(std::size_t begin, std::size_t end, int units) const {
    return row(begin, end)[units];
  }
  int units() const { return units_; }

  /// The last stage of the best plan: its first layer (`begin` if it is the only stage) and its
  /// number of units. Of equal plans the one with fewer stages wins, then the one with the earlier
  /// split.
  std::pair<std::size_t, int> last(std::size_t begin, std::size_t end, int units) const {
    const double best = seconds(begin, end, units);
    if (replicated(begin, end, units) == best) return {begin, units};
    for (std::size_t split = begin + 1; split < end; ++split)
      for (int m = 1; m < units; ++m)
        if (std::max(seconds(begin, split, units - m), last_stage(split, end, m)) == best)
          return {split, m};
    PIPEWRIGHT_CHECK(false, "the best plan is not found again");
  }

 private:
  const double* row(std::size_t begin, std::size_t end) const {
    return seconds_.data() + (begin * (n_ + 1) + end) * width_;
  }

  /// Finds the best plans of layers [begin, end) for all numbers of units. `last_stages` is indexed
  /// by split · width + units.
  void find(std::size_t begin, std::size_t end, const std::vector<double>& last_stages) {
    double* const best = seconds_.data() + (begin * (n_ + 1) + end) * width_;
    for (int units = 1; units <= units_; ++units) best[units] = replicated(begin, end, units);
    for (std::size_t split = begin + 1; split < end; ++split) {
      const double* const before = row(begin, split);
      const double* const stage = last_stages.data() + split * width_;
      const double worst = *std::max_element(best + 1, best + units_ + 1);
      for (int m = 1; m < units_; ++m) {
        const double of_stage = stage[m];
        if (of_stage >= worst) continue;  // it improves no plan
        for (int units = m + 1; units <= units_; ++units)
          best[units] = std::min(best[units], std::max(before[units - m], of_stage));
      }
    }
  }

  /// Seconds of a stage on m units that begins at `split`, including the messages it exchanges.
  double last_stage(std::size_t split, std::size_t end, int m) const {
    return std::max({replicated(split, end, m), crossing(split, m),
                     rules_.cost == PipeDreamRules::Cost::Code ? crossing(end, m) : 0});
  }

  double replicated(std::size_t begin, std::size_t end, int m) const {
    const double compute = below_ != nullptr ? below_->seconds(begin, end, below_->units())
                           : begin == 0      ? first_compute_[end]
                                             : compute_[end] - compute_[begin];
    const double weights = weights_[end] - weights_[begin];
    if (rules_.cost == PipeDreamRules::Cost::Paper)
      return std::max(compute, 2 * (m - 1) * weights / bandwidth_) / m;
    return (compute + 4 * (m - 1) * weights / (m * bandwidth_ * inner_workers_)) / m;
  }

  /// Seconds of the messages over the boundary before that layer.
  double crossing(std::size_t layer, int m) const {
    if (layer == n_ || layer == 0) return 0;
    const double bytes =
        2.0 * rules_.microbatches * static_cast<double>(profile_.layers[layer - 1].output_bytes);
    if (rules_.cost == PipeDreamRules::Cost::Paper) return bytes / bandwidth_;
    return rules_.boundaries ? bytes / (bandwidth_ * m) : 0;
  }

  const Profile& profile_;
  const PipeDreamRules& rules_;
  int units_;
  double bandwidth_;
  int inner_workers_;
  const Level* below_;
  std::size_t n_;
  std::size_t begins_;           ///< number of layers that a run may begin with
  std::size_t width_;            ///< how many numbers of units there are, 0 included
  std::vector<double> weights_;  ///< bytes of all layers before each layer
  std::vector<double> compute_;  ///< seconds of all layers before each layer, on one worker
  /// The same of a first stage that ends before each layer: nobody needs its input's gradient.
  std::vector<double> first_compute_;
  std::vector<double> seconds_;  ///< [(begin · (n + 1) + end) · width + units]
};

/// Appends the stages of layers [begin, end) on so many units of a level, with each unit's own plan
/// inside.
void unfold(const std::vector<Level>& levels, std::size_t level, std::size_t begin, std::size_t end,
            int units, int copies, std::vector<PipeDreamStage>& stages) {
  const auto [split, last] = levels[level].last(begin, end, units);
  if (split > begin) unfold(levels, level, begin, split, units - last, copies, stages);
  const int replicas = copies * last;
  if (level == 0)
    stages.push_back({split, end, replicas});
  else
    unfold(levels, level - 1, split, end, levels[level - 1].units(), replicas, stages);
}

/// Refuses a search that would take hours or more memory than there is.
void check_effort(double layers, const PipeDreamRules& rules) {
  double steps = 0, bytes = 0, workers = 1;
  for (const WorkerLevel& level : rules.levels) {
    workers *= level.units;
    const bool top = &level == &rules.levels.back();
    steps +=
        (top ? layers * layers / 2 : layers * layers * layers / 6) * level.units * level.units / 2;
    bytes += (top ? layers : layers * layers) * level.units * sizeof(double);
  }
  if (workers > kMostWorkers)
    throw Error(ErrorKind::Experiment,
                concat("the levels have ", grouped_text(workers), " workers; at most ",
                       grouped_text(kMostWorkers), " are possible"));
  const MemoryLimit limit = memory_limit();
  if (steps <= kMostSteps && bytes <= limit.bytes) return;
  throw Error(ErrorKind::Experiment,
              concat("PipeDream's plan of ", counted(static_cast<std::int64_t>(layers), "layer"),
                     " on these levels takes about ",
                     bytes > limit.bytes
                         ? concat(bytes_text(bytes), "; ", limit.text)
                         : concat(duration_text(steps / kStepsPerSecond), "; at most ",
                                  duration_text(kMostSteps / kStepsPerSecond), " are waited for"),
                     "; give fewer units, the inner levels' first (--workers)"));
}

}  // namespace

PipeDreamPlan pipedream_partition(const Profile& profile, const PipeDreamRules& rules) {
  PIPEWRIGHT_CHECK(!rules.levels.empty() && !profile.layers.empty(), "nothing to partition");
  check_effort(static_cast<double>(profile.layers.size()), rules);
  std::vector<Level> levels;
  levels.reserve(rules.levels.size());  // they point to each other
  int workers = 1;
  for (std::size_t l = 0; l < rules.levels.size(); ++l) {
    levels.emplace_back(profile, rules, l, workers, l == 0 ? nullptr : &levels.back());
    workers *= rules.levels[l].units;
  }
  const Level& top = levels.back();
  PipeDreamPlan plan;
  plan.seconds = top.seconds(0, profile.layers.size(), top.units());
  unfold(levels, levels.size() - 1, 0, profile.layers.size(), top.units(), 1, plan.stages);
  return plan;
}

}  // namespace pipewright
