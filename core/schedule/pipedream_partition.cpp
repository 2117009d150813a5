#include "core/schedule/pipedream_partition.h"

#include <algorithm>
#include <functional>

#include "core/base/as_size.h"
#include "core/base/error.h"
#include "core/base/text_table.h"
#include "core/schedule/render_profile.h"

namespace pipewright {
namespace {

constexpr double kImpossible = std::numeric_limits<double>::infinity();

/// Of layers [begin, end) on some units: the last stage begins at `split` and has `last` of them.
struct Best {
  double seconds = kImpossible;
  std::size_t split = 0;
  int last = 0;
};

/// The best plans of all runs of layers on up to as many units as one level has.
class Level {
 public:
  /// `compute`: seconds of layers [begin, end) on one unit.
  using Compute = std::function<double(std::size_t begin, std::size_t end)>;

  Level(const Profile& profile, const PipeDreamRules& rules, std::size_t level, int inner_workers,
        const Compute& compute)
      : profile_(profile),
        rules_(rules),
        units_(rules.levels[level].units),
        bandwidth_(rules.levels[level].bandwidth),
        inner_workers_(inner_workers),
        compute_(compute),
        n_(profile.layers.size()),
        weights_(n_ + 1, 0),
        best_(n_ * (n_ + 1) * as_size(units_ + 1)) {
    for (std::size_t i = 0; i < n_; ++i)
      weights_[i + 1] = weights_[i] + static_cast<double>(profile.layers[i].parameter_bytes);
    for (std::size_t begin = 0; begin < n_; ++begin)
      for (std::size_t end = begin + 1; end <= n_; ++end)
        for (int units = 1; units <= units_; ++units) find(begin, end, units);
  }

  const Best& best(std::size_t begin, std::size_t end, int units) const {
    return best_[(begin * (n_ + 1) + end) * as_size(units_ + 1) + as_size(units)];
  }
  int units() const { return units_; }

 private:
  void find(std::size_t begin, std::size_t end, int units) {
    Best found{replicated(begin, end, units), begin, units};
    for (std::size_t split = begin + 1; split < end; ++split)
      for (int last = 1; last < units; ++last) {
        const double seconds =
            std::max({best(begin, split, units - last).seconds, replicated(split, end, last),
                      crossing(split, last),
                      rules_.cost == PipeDreamRules::Cost::Code ? crossing(end, last) : 0});
        if (seconds < found.seconds) found = {seconds, split, last};
      }
    best_[(begin * (n_ + 1) + end) * as_size(units_ + 1) + as_size(units)] = found;
  }

  double replicated(std::size_t begin, std::size_t end, int m) const {
    if (m > 1 && rules_.straight) return kImpossible;
    const double compute = compute_(begin, end), weights = weights_[end] - weights_[begin];
    if (rules_.cost == PipeDreamRules::Cost::Paper)
      return std::max(compute, 2 * (m - 1) * weights / bandwidth_) / m;
    return (compute + 4 * (m - 1) * weights / (m * bandwidth_ * inner_workers_)) / m;
  }

  /// Of the boundary before that layer.
  double crossing(std::size_t layer, int m) const {
    if (layer == n_) return 0;
    const double bytes = 2 * static_cast<double>(profile_.layers[layer - 1].output_bytes);
    if (rules_.cost == PipeDreamRules::Cost::Paper) return bytes / bandwidth_;
    return rules_.boundaries ? bytes / (bandwidth_ * m) : 0;
  }

  const Profile& profile_;
  const PipeDreamRules& rules_;
  int units_;
  double bandwidth_;
  int inner_workers_;
  Compute compute_;
  std::size_t n_;
  std::vector<double> weights_;  ///< bytes before each layer
  std::vector<Best> best_;
};

/// The stages of layers [begin, end) on so many units of a level, each unit's own plan inside.
void unfold(const std::vector<Level>& levels, std::size_t level, std::size_t begin, std::size_t end,
            int units, int copies, std::vector<PipeDreamStage>& stages) {
  const Best& best = levels[level].best(begin, end, units);
  if (best.split > begin)
    unfold(levels, level, begin, best.split, units - best.last, copies, stages);
  const int replicas = copies * best.last;
  if (level == 0)
    stages.push_back({best.split, end, replicas});
  else
    unfold(levels, level - 1, best.split, end, levels[level - 1].units(), replicas, stages);
}

}  // namespace

PipeDreamPlan pipedream_partition(const Profile& profile, const PipeDreamRules& rules) {
  PIPEWRIGHT_CHECK(!rules.levels.empty() && !profile.layers.empty(), "nothing to partition");
  std::vector<double> seconds{0};
  for (const LayerCost& layer : profile.layers)
    seconds.push_back(seconds.back() + layer.forward + layer.backward);
  Level::Compute compute = [&](std::size_t begin, std::size_t end) {
    return seconds[end] - seconds[begin];
  };
  std::vector<Level> levels;
  levels.reserve(rules.levels.size());
  int workers = 1;
  for (std::size_t l = 0; l < rules.levels.size(); ++l) {
    const Level& level = levels.emplace_back(profile, rules, l, workers, compute);
    compute = [&level](std::size_t begin, std::size_t end) {
      return level.best(begin, end, level.units()).seconds;
    };
    workers *= rules.levels[l].units;
  }
  const Level& top = levels.back();
  PipeDreamPlan plan;
  plan.seconds = top.best(0, profile.layers.size(), top.units()).seconds;
  if (plan.seconds == kImpossible)
    throw Error(ErrorKind::Experiment,
                concat("no plan uses all ", workers, " workers: the model has ",
                       profile.layers.size(), " layers, and a stage holds at least one"));
  unfold(levels, levels.size() - 1, 0, profile.layers.size(), top.units(), 1, plan.stages);
  return plan;
}

std::string render_plan(const Profile& profile, const PipeDreamPlan& plan) {
  TextTable table({"stage", "replicas", "layers", ""}, {3});
  for (std::size_t i = 0; i < plan.stages.size(); ++i) {
    const PipeDreamStage& stage = plan.stages[i];
    const std::string &first = profile.layers[stage.begin].name,
                      &last = profile.layers[stage.end - 1].name;
    table.add({std::to_string(i), std::to_string(stage.replicas),
               std::to_string(stage.end - stage.begin),
               first == last ? first : concat(first, " … ", last)});
  }
  const bool equal = std::ranges::all_of(plan.stages, [&](const PipeDreamStage& stage) {
    return stage.replicas == plan.stages[0].replicas;
  });
  return concat(table.text(), "\na mini-batch every ", time_text(plan.seconds), " is predicted",
                equal ? concat("; run it with pipeline.stages: ", plan.stages.size(),
                               ", replicas: ", plan.stages[0].replicas)
                      : "; a plan whose stages have unequal replicas is only reported: our "
                        "pipelines have as many of every stage",
                '\n');
}

}  // namespace pipewright
