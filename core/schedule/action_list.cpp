// SPDX-License-Identifier: Apache-2.0
#include "core/schedule/action_list.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "core/base/as_size.h"
#include "core/base/csv.h"
#include "core/base/parsed.h"
#include "core/base/text.h"

namespace pipewright {
namespace {

constexpr int kMostStages = 4096;
constexpr int kMostWorkers = 1 << 16;
constexpr int kMostBatches = 1 << 20;  // mini-batches, and micro-batches of one
constexpr int kMostSteps = 1 << 20;    // that weights are predicted ahead or lie back
constexpr std::size_t kMostActionsInAFile = std::size_t{1} << 22;

constexpr std::array<std::string_view, 4> kRuleNames{"optimizer", "lookahead", "geometric",
                                                     "drift"};  // as PredictionRule::Kind

bool has_decay(PredictionRule::Kind kind) {
  return kind == PredictionRule::Kind::Lookahead || kind == PredictionRule::Kind::Drift;
}

std::string rule_text(const PredictionRule& rule) {
  std::string text;
  if (rule.kind != PredictionRule::Kind::Optimizer)
    text += concat(" ", kRuleNames[static_cast<std::size_t>(rule.kind)]);
  if (has_decay(rule.kind)) text += concat(" ", number_text(rule.decay));
  if (rule.weight_decay) text += " weight_decay";
  if (rule.last_lr) text += " last_lr";
  if (rule.each_lr) text += " each_lr";
  return text;
}

/// Removes a whole number from the front of `text`; nullopt if there is none.
std::optional<int> take_number(std::string_view& text) {
  int value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return {};
  text.remove_prefix(static_cast<std::size_t>(stop - text.data()));
  return value;
}

std::optional<double> real(std::string_view text) {
  const auto value = parsed<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

/// The rule that such words name; nullopt if they name none.
std::optional<PredictionRule> rule_of(std::string_view text) {
  PredictionRule rule;
  std::vector<std::string> words;
  for (std::string& word : split(text, ' '))
    if (!word.empty()) words.push_back(std::move(word));
  std::size_t next = 0;
  if (const auto* named =
          words.empty() ? kRuleNames.end() : std::ranges::find(kRuleNames, words[0]);
      named != kRuleNames.end()) {
    rule.kind = static_cast<PredictionRule::Kind>(named - kRuleNames.begin());
    ++next;
    if (has_decay(rule.kind)) {
      const auto decay = next < words.size() ? real(words[next]) : std::nullopt;
      if (!decay) return {};
      rule.decay = *decay;
      ++next;
    }
  }
  for (; next < words.size(); ++next) {
    const std::map<std::string, bool*> flags{{"last_lr", &rule.last_lr},
                                             {"each_lr", &rule.each_lr},
                                             {"weight_decay", &rule.weight_decay}};
    const auto flag = flags.find(words[next]);
    if (flag == flags.end() || *flag->second) return {};
    *flag->second = true;
  }
  if (rule.last_lr && rule.each_lr) return {};
  return rule;
}

enum class Column : std::uint8_t {
  Worker,
  Kind,
  Stage,
  Replica,
  Minibatch,
  Microbatch,
  Loss,
  Weights,
  Scale,
  WithNext,
  Ignored
};

struct ColumnName {
  std::string_view name;
  Column column;
};
constexpr std::array<ColumnName, 15> kColumns{{{"worker", Column::Worker},
                                               {"kind", Column::Kind},
                                               {"stage", Column::Stage},
                                               {"replica", Column::Replica},
                                               {"minibatch", Column::Minibatch},
                                               {"microbatch", Column::Microbatch},
                                               {"loss", Column::Loss},
                                               {"weights", Column::Weights},
                                               {"scale", Column::Scale},
                                               {"with_next", Column::WithNext},
                                               {"index", Column::Ignored},
                                               {"version", Column::Ignored},
                                               {"ahead", Column::Ignored},
                                               {"start", Column::Ignored},
                                               {"slots", Column::Ignored}}};

/// Reads the lines of one file.
class Reader {
 public:
  explicit Reader(const std::filesystem::path& file) : file_(file) {}

  ActionList read(std::string_view text) {
    CsvReader rows(text, file_.string());
    while (rows.next()) {
      line_ = static_cast<int>(rows.line());
      if (columns_.empty())
        read_names(rows.fields());
      else if (!rows.fields().empty())
        read_action(rows.fields());
    }
    if (actions_ == 0) fail(1, "the file has no action below its first line");
    complete();
    return std::move(list_);
  }

 private:
  void read_names(const std::vector<CsvField>& names) {
    std::vector<std::string> known;
    for (const ColumnName& each : kColumns) known.emplace_back(each.name);
    for (const auto& [name, begin] : names) {
      const auto* const found = std::ranges::find(kColumns, name, &ColumnName::name);
      if (found == kColumns.end())
        fail(begin, concat("'", name, "' is no column", suggestion(name, known)));
      if (found->column != Column::Ignored && std::ranges::count(columns_, found->column) > 0)
        fail(begin, concat("the column ", name, " is there twice"));
      columns_.push_back(found->column);
    }
    for (const Column needed : {Column::Worker, Column::Kind, Column::Stage, Column::Minibatch})
      if (std::ranges::count(columns_, needed) == 0)
        fail(1, concat("there is no column ", kColumns[static_cast<std::size_t>(needed)].name,
                       "; expected worker, kind, stage and minibatch"));
  }

  void read_action(const std::vector<CsvField>& fields) {
    Action action;
    int worker = 0;
    bool has_loss = false, has_weights = false;
    std::size_t at = 0;
    for (const auto& [field, column] : fields) {
      if (at == columns_.size())
        fail(column, concat("there are more fields than the ", columns_.size(), " columns"));
      column_ = column;
      switch (columns_[at++]) {
        case Column::Worker: worker = number(field, "worker", kMostWorkers); break;
        case Column::Kind: action.kind = kind(field); break;
        case Column::Stage: action.stage = number(field, "stage", kMostStages); break;
        case Column::Minibatch: action.minibatch = number(field, "minibatch", kMostBatches); break;
        case Column::Replica:
          if (!field.empty()) action.replica = number(field, "replica", kMostWorkers);
          break;
        case Column::Microbatch:
          if (!field.empty()) action.microbatch = number(field, "microbatch", kMostBatches);
          break;
        case Column::Loss:
          has_loss = !field.empty();
          if (has_loss) action.loss = number(field, "loss", kMostStages);
          break;
        case Column::Weights:
          has_weights = !field.empty();
          if (has_weights) action.weights = weights(field);
          break;
        case Column::Scale:
          if (!field.empty()) action.scale = scale(field);
          break;
        case Column::WithNext:
          if (!field.empty()) action.with_next = number(field, "with_next", 2) == 1;
          break;
        case Column::Ignored: break;
      }
    }
    if (at < columns_.size())
      fail(1, concat("there are ", at, " fields; expected ", columns_.size(), ", one per column"));
    if (action.kind == ActionKind::Recompute &&
        (!has_weights || action.weights == Weights::of_forward()))
      return;                                        // pipeline.recompute decides on it
    if (!is_pass(action.kind)) action.weights = {};  // it reads none
    if (!of_microbatch(action.kind)) action.microbatch = 0;
    if (!has_loss || !facts_of(action.kind).of_loss) action.loss = kLastStage;
    if (!has_weights && is_part_of_backward(action.kind)) action.weights = Weights::of_forward();
    add(action, worker);
  }

  void add(const Action& action, int worker) {
    if (++actions_ > kMostActionsInAFile)
      fail(1, concat("the file has more than ", kMostActionsInAFile, " actions"));
    const auto [home, fresh] = homes_.try_emplace({action.replica, action.stage}, worker);
    if (home->second != worker)
      fail(1, concat("stage ", action.stage, " of replica ", action.replica, " is on worker ",
                     worker, " here, but on worker ", home->second, " above"));
    auto& workers = list_.schedule.workers;
    if (workers.size() <= as_size(worker)) {
      workers.resize(as_size(worker) + 1);
      list_.lines.resize(as_size(worker) + 1);
    }
    workers[as_size(worker)].push_back(action);
    list_.lines[as_size(worker)].push_back(line_);
  }

  /// Names what the lines do not: the shape, losses, heads, and versions from before.
  void complete() {
    Schedule& schedule = list_.schedule;
    PipelineShape& shape = schedule.shape;
    for (const auto& [place, worker] : homes_) {
      shape.replicas = std::max(shape.replicas, place.first + 1);
      shape.stages = std::max(shape.stages, place.second + 1);
    }
    place_stages();
    std::vector<std::set<int>> losses(as_size(shape.stages));
    std::set<int> heads;
    schedule.earlier.assign(as_size(shape.stages), 0);
    for (auto& actions : schedule.workers)
      for (Action& action : actions) {
        if (action.loss == kLastStage) action.loss = shape.stages - 1;
        shape.minibatches = std::max(shape.minibatches, action.minibatch + 1);
        if (of_microbatch(action.kind))
          shape.microbatches = std::max(shape.microbatches, action.microbatch + 1);
        if (makes_weight_gradient(action.kind)) losses[as_size(action.stage)].insert(action.loss);
        if (action.kind == ActionKind::Head) heads.insert(action.stage);
        int& earlier = schedule.earlier[as_size(action.stage)];
        if (action.weights.source == Weights::Source::Version)
          earlier = std::max(earlier, -action.weights.version);
      }
    if (std::ranges::count(schedule.earlier, 0) == shape.stages) schedule.earlier.clear();
    for (const std::set<int>& of_stage : losses)
      schedule.learns_from.emplace_back(of_stage.begin(), of_stage.end());
    schedule.auxiliary.assign(heads.begin(), heads.end());
  }

  /// Where the stages of each replica are.
  void place_stages() {
    PipelineShape& shape = list_.schedule.shape;
    const int workers = static_cast<int>(list_.schedule.workers.size());
    std::vector<std::vector<int>> placement(as_size(shape.replicas));
    line_ = 1;
    for (int replica = 0; replica < shape.replicas; ++replica)
      for (int stage = 0; stage < shape.stages; ++stage) {
        const auto home = homes_.find({replica, stage});
        if (home == homes_.end())
          fail(1, concat("stage ", stage, " of replica ", replica,
                         " has no action; stages and replicas are numbered from 0 without gaps"));
        placement[as_size(replica)].push_back(home->second);
      }
    shape.place(std::move(placement));
    for (int worker = 0; worker < workers; ++worker)
      if (list_.schedule.workers[as_size(worker)].empty())
        fail(1,
             concat("worker ", worker, " has no action; workers are numbered from 0 without gaps"));
  }

  ActionKind kind(std::string_view field) const {
    const auto* const found = std::ranges::find(kActionKinds, field, &ActionKindFacts::name);
    if (found != kActionKinds.end()) return found->kind;
    std::vector<std::string> known;
    for (const ActionKindFacts& facts : kActionKinds) known.emplace_back(facts.name);
    fail(column_, concat("'", field, "' is no kind of action", suggestion(field, known)));
  }

  int number(std::string_view field, std::string_view what, int end) const {
    std::string_view rest = field;
    const std::optional<int> value = take_number(rest);
    if (!value || !rest.empty() || *value < 0 || *value >= end)
      fail(column_, concat("the ", what, " '", field, "' is no whole number from 0 to ", end - 1));
    return *value;
  }

  double scale(std::string_view field) const {
    const std::optional<double> value = real(field);
    if (!value) fail(column_, concat("the scale '", field, "' is no number"));
    return *value;
  }

  Weights weights(std::string_view field) {
    Weights weights;
    std::string_view rest = field;
    if (rest == "forward") return Weights::of_forward();
    if (constexpr std::string_view kLatest = "latest"; rest.starts_with(kLatest)) {
      rest.remove_prefix(kLatest.size());
    } else if (const std::optional<int> version = take_number(rest)) {
      weights = Weights::of_version(*version);
    } else {
      refuse_weights(field);
    }
    if (rest.starts_with('+') || rest.starts_with('-')) {
      const bool back = rest.front() == '-';
      rest.remove_prefix(1);
      const bool digit = !rest.empty() && rest.front() >= '0' && rest.front() <= '9';
      const std::optional<int> steps = digit ? take_number(rest) : std::nullopt;
      if (!steps) refuse_weights(field);
      weights.ahead = back ? -*steps : *steps;
    }
    if (std::abs(weights.version) > kMostSteps || std::abs(weights.ahead) > kMostSteps ||
        !(rest.empty() || rest.starts_with(' ')))
      refuse_weights(field);
    const std::optional<PredictionRule> rule = rule_of(rest);
    if (!rule) refuse_weights(field);
    weights.rule = index_of(*rule);
    return weights;
  }

  int index_of(const PredictionRule& rule) {
    auto& rules = list_.schedule.rules;
    const auto found = std::ranges::find(rules, rule);
    const auto index = found - rules.begin();
    if (found == rules.end()) rules.push_back(rule);
    return static_cast<int>(index);
  }

  [[noreturn]] void refuse_weights(std::string_view field) const {
    fail(column_, concat("the weights '", field,
                         "' are none; expected latest, forward or the number of a version, as in "
                         "latest+2 or 3-1, and after it a rule: lookahead 0.9, geometric, drift "
                         "0.5, weight_decay, and last_lr or each_lr"));
  }
  [[noreturn]] void fail(std::size_t column, const std::string& message) const {
    throw Error(ErrorKind::Data, message, concat(file_.string(), ":", line_, ":", column));
  }

  static constexpr int kLastStage = -1;

  const std::filesystem::path& file_;
  int line_ = 0;
  std::size_t column_ = 1;  ///< where the field begins that is read
  std::size_t actions_ = 0;
  std::vector<Column> columns_;
  std::map<std::pair<int, int>, int> homes_;  ///< {replica, stage} → worker
  ActionList list_;
};

}  // namespace

std::string weights_text(const Weights& weights, const std::vector<PredictionRule>& rules) {
  if (weights.source == Weights::Source::OfForward) return "forward";
  std::string text = weights.source == Weights::Source::Latest ? std::string("latest")
                                                               : std::to_string(weights.version);
  if (weights.ahead != 0) text += concat(weights.ahead > 0 ? "+" : "-", std::abs(weights.ahead));
  return text + rule_text(rules.at(as_size(weights.rule)));
}

bool is_action_list(std::string_view text) {
  const std::string_view first = text.substr(0, std::min(text.find_first_of("\r\n"), text.size()));
  const std::vector<std::string> names = split(first, ',');
  return std::ranges::count(names, "worker") > 0 && std::ranges::count(names, "kind") > 0;
}

ActionList read_action_list(std::string_view text, const std::filesystem::path& file) {
  return Reader(file).read(text);
}

Schedule first_minibatches(const Schedule& schedule, int minibatches) {
  Schedule first = schedule;
  first.shape.minibatches = minibatches;
  for (auto& actions : first.workers) {
    for (std::size_t i = 0; i + 1 < actions.size(); ++i)
      if (actions[i + 1].minibatch >= minibatches) actions[i].with_next = false;
    std::erase_if(actions, [&](const Action& each) { return each.minibatch >= minibatches; });
  }
  return first;
}

}  // namespace pipewright
