// SPDX-License-Identifier: Apache-2.0
#include "core/schedule/find_loop.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>
#include <utility>

#include "core/base/as_size.h"
#include "core/base/error.h"

namespace pipewright {
namespace {

/// Rounds of 1, 2, 3, 4, 6 and 12 mini-batches are tried; short schedules have as many mini-batches
/// as the long one, less a multiple of this.
constexpr int kRounds = 12;
/// A longer fill than this many mini-batches is not looked for.
constexpr int kLongestFill = 512;

/// The smallest and the largest of some numbers.
struct Range {
  int least = std::numeric_limits<int>::max(), most = std::numeric_limits<int>::min();
  void add(int number) {
    least = std::min(least, number);
    most = std::max(most, number);
  }
};

/// Looks for a loop in one short schedule.
class Search {
 public:
  explicit Search(const ProvedSchedule& proved)
      : schedule_(proved.schedule), order_(proved.order), versions_(proved.versions) {}

  /// A loop of so many mini-batches, from the middle of the schedule.
  std::optional<Loop> with_rounds_of(int minibatches) const {
    Loop loop{.step = {.minibatches = minibatches}, .bodies = {}, .order = {}};
    const int middle = (schedule_.shape.minibatches - minibatches) / 2;
    loop.order = {beginning_of(middle), beginning_of(middle + minibatches)};
    if (loop.order.begin >= loop.order.end) return {};
    name_bodies(loop);
    if (std::ranges::any_of(loop.bodies, [](const auto& body) { return body.size() == 0; }))
      return {};
    count_updates(loop);
    if (!stands_apart(loop)) return {};
    return loop;
  }

 private:
  /// Where in the execution order worker 0 begins a mini-batch.
  std::size_t beginning_of(int minibatch) const {
    const auto begins = [&](ActionPlace place) {
      return place.first == 0 && action(place).minibatch == minibatch;
    };
    return static_cast<std::size_t>(std::ranges::find_if(order_, begins) - order_.begin());
  }

  void name_bodies(Loop& loop) const {
    loop.bodies.resize(schedule_.workers.size());
    for (std::size_t i = 0; i < loop.order.end; ++i) {
      Loop::Part& body = loop.bodies[as_size(order_[i].first)];
      if (i < loop.order.begin) ++body.begin;
      ++body.end;
    }
  }

  void count_updates(Loop& loop) const {
    const PipelineShape& shape = schedule_.shape;
    loop.step.updates.assign(as_size(shape.replicas * shape.stages), 0);
    for (std::size_t i = loop.order.begin; i < loop.order.end; ++i)
      if (const Action& each = action(order_[i]); each.kind == ActionKind::Update)
        ++loop.step.updates[stage_of(each)];
  }

  /// The regular part of a worker's actions: around the body, as far as each action is that of one
  /// round before or after.
  Loop::Part regular_part(const Loop& loop, std::size_t worker) const {
    const auto& actions = schedule_.workers[worker];
    const auto [begin, end] = loop.bodies[worker];
    const std::size_t size = end - begin;
    auto repeats = [&](std::size_t first) {
      return later(actions[first], loop.step, schedule_.shape.stages, 1) == actions[first + size];
    };
    Loop::Part part{begin, end};
    while (part.begin > 0 && repeats(part.begin - 1)) --part.begin;
    while (part.end < actions.size() && repeats(part.end - size)) ++part.end;
    return part;
  }

  /// The mini-batches, and each stage's versions, that some actions touch.
  struct Touched {
    Range minibatches;
    std::vector<Range> versions;
  };
  void touch(Touched& touched, std::size_t worker, Loop::Part part) const {
    touched.versions.resize(as_size(schedule_.shape.stages * schedule_.shape.replicas));
    for (std::size_t i = part.begin; i < part.end; ++i) {
      const Action& each = schedule_.workers[worker][i];
      touched.minibatches.add(each.minibatch);
      const ActionWeights& weights = versions_.workers[worker][i];
      Range& versions = touched.versions[stage_of(each)];
      if (is_pass(each.kind)) versions.add(weights.key.version);
      if (each.kind == ActionKind::Update) versions.add(weights.latest);
      if (weights.read) versions.add(weights.read->version);
    }
  }

  /// Updates of the body apply gradients from Schedule::gradient_delay updates before. How stale
  /// these are was settled there, so the body touches these rounds, too.
  void touch_waiting(Touched& body, const Step& step) const {
    int most_rounds = 0;
    for (std::size_t stage = 0; stage < body.versions.size(); ++stage) {
      const int updates = step.updates[stage];
      if (updates == 0) continue;
      const int rounds = (schedule_.gradient_delay + updates - 1) / updates;
      body.versions[stage].least -= rounds * updates;
      most_rounds = std::max(most_rounds, rounds);
    }
    body.minibatches.least -= most_rounds * step.minibatches;
  }

  /// Whether the irregular parts touch no mini-batch and no version that the body touches, and at
  /// least one regular round is on either side of the body.
  bool stands_apart(const Loop& loop) const {
    Touched before, body, after;
    for (std::size_t worker = 0; worker < schedule_.workers.size(); ++worker) {
      const Loop::Part regular = regular_part(loop, worker), own = loop.bodies[worker];
      if (regular.begin + own.size() > own.begin || own.end + own.size() > regular.end)
        return false;
      touch(before, worker, {0, regular.begin});
      touch(body, worker, own);
      touch(after, worker, {regular.end, schedule_.workers[worker].size()});
    }
    touch_waiting(body, loop.step);
    auto apart = [](const Range& first, const Range& second) { return first.most < second.least; };
    auto in_order = [&](const Range& first, const Range& second, const Range& third) {
      return apart(first, second) && apart(second, third);
    };
    if (!in_order(before.minibatches, body.minibatches, after.minibatches)) return false;
    for (std::size_t stage = 0; stage < body.versions.size(); ++stage)
      if (schedule_.shape.training &&
          !in_order(before.versions[stage], body.versions[stage], after.versions[stage]))
        return false;
    return true;
  }

  const Action& action(ActionPlace place) const { return action_at(schedule_, place); }
  std::size_t stage_of(const Action& each) const {
    return as_size(each.replica * schedule_.shape.stages + each.stage);
  }

  const Schedule& schedule_;
  const std::vector<ActionPlace>& order_;
  const Versions& versions_;
};

/// Whether the scheme's schedule that is one round longer is the short one with one more round, and
/// is right.
bool goes_on(const Schedule& schedule, const Loop& loop, const ScheduleMaker& make) {
  Schedule longer = make(schedule.shape.minibatches + loop.step.minibatches);
  if (longer != unrolled(schedule, loop, 2)) return false;
  prove(std::move(longer));
  return true;
}

std::optional<ProvedSchedule> loop_of(Schedule schedule, const ScheduleMaker& make,
                                      int minibatches) {
  ProvedSchedule proved = prove(std::move(schedule));
  const int once = proved.schedule.shape.minibatches;
  for (const int round : {1, 2, 3, 4, 6, 12}) {
    if (3 * round > once) break;
    proved.loop = Search(proved).with_rounds_of(round);
    if (!proved.loop || !goes_on(proved.schedule, *proved.loop, make)) continue;
    proved.loop->rounds = (minibatches - once) / round + 1;
    return proved;
  }
  return {};
}

/// The numbers of rounds at which a loop is compared with what the scheme makes: all of them, if
/// the whole schedule has at most kMostCompared actions; else three that only `minibatches`
/// decides.
std::vector<int> compared_rounds(const ProvedSchedule& proved, int minibatches) {
  constexpr std::size_t kMostCompared = 200'000;
  constexpr int kLengths = 3;
  std::size_t once = 0, body = 0;
  for (const auto& actions : proved.schedule.workers) once += actions.size();
  for (const Loop::Part& part : proved.loop->bodies) body += part.size();
  const std::size_t room = once < kMostCompared ? (kMostCompared - once) / body : 0;
  const int rounds = proved.loop->rounds;
  if (as_size(rounds - 1) <= room) return {rounds};
  if (room < 2) return {};
  std::vector<int> chosen;
  std::mt19937_64 random(static_cast<std::uint64_t>(minibatches));
  for (int i = 0; i < kLengths; ++i) chosen.push_back(2 + static_cast<int>(random() % (room - 1)));
  return chosen;
}

/// The promise of Scheme::repeats(), looked at beyond what the proof of the loop needs: a scheme
/// that changes later would be trained as if it did not. Throws Error{Schedule} if it is broken.
void check_promise(const ProvedSchedule& proved, const ScheduleMaker& make, int minibatches) {
  for (const int rounds : compared_rounds(proved, minibatches)) {
    const Schedule whole = unrolled(proved.schedule, *proved.loop, rounds);
    if (make(whole.shape.minibatches) != whole)
      throw Error(
          ErrorKind::Schedule,
          concat("the scheme says that its schedules repeat themselves (repeats()), but that "
                 "of ",
                 whole.shape.minibatches, " mini-batches does not; let repeats() return false"));
  }
}

}  // namespace

std::optional<ProvedSchedule> find_loop(const ScheduleMaker& make, int minibatches) {
  const int rest = minibatches % kRounds;
  std::optional<ProvedSchedule> found;
  try {
    for (int fill = kRounds; fill <= kLongestFill && !found; fill *= 2) {
      if (2 * (fill + rest) > minibatches) break;
      found = loop_of(make(fill + rest), make, minibatches);
    }
  } catch (const Error& error) {  // whether the whole schedule is right, its own proof says
    if (error.kind() != ErrorKind::Schedule && error.kind() != ErrorKind::Experiment) throw;
  }
  if (found) check_promise(*found, make, minibatches);
  return found;
}

}  // namespace pipewright
