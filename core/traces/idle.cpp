// SPDX-License-Identifier: Apache-2.0
#include "core/traces/idle.h"

#include <algorithm>
#include <map>

#include "core/base/as_size.h"
#include "core/base/median.h"
#include "core/schedule/late_gradients.h"
#include "core/schedule/lent_weights.h"

namespace pipewright {
namespace {

struct Interval {
  double begin = 0, end = 0;
  Interval within(double from, double to) const {
    return {std::max(begin, from), std::min(end, to)};
  }
  double length() const { return std::max(0.0, end - begin); }
};

double& part_of(BlameParts& parts, Blame blame) {
  return parts[static_cast<std::size_t>(blame)];
}

double computing(const Span& span) {
  return std::max(0.0, span.end - span.begin - span.decoding - span.encoding - span.sending);
}

class IdleTimes {
 public:
  IdleTimes(const ProvedSchedule& proved, const Spans& spans)
      : schedule_(proved.schedule),
        spans_(spans),
        index_(proved.index),
        medians_(median_seconds(schedule_, spans)) {
    find_meetings();
    find_gradients(proved);
  }

  std::vector<Idle> all() {
    double end = 0;
    for (const auto& worker : spans_)
      if (!worker.empty()) end = std::max(end, worker.back().end);
    std::vector<Idle> idle;
    for (std::size_t w = 0; w < spans_.size(); ++w) {
      double free = 0;
      for (std::size_t i = 0; i < spans_[w].size(); ++i) {
        for (const Wait& wait : waits(w, i, free)) add(idle, w, i, wait);
        free = spans_[w][i].end;
      }
      if (end > free) {
        Idle& rest = idle.emplace_back(Idle{static_cast<int>(w), free, end, spans_[w].size()});
        part_of(rest.parts, Blame::Order) = rest.length();
      }
    }
    return idle;
  }

 private:
  /// Time in which a worker waits for a message of `sender`, the action at an index of a worker.
  struct Wait {
    Interval time;
    ActionPlace sender = kNowhere;
  };

  const Action& action(std::size_t w, std::size_t i) const { return schedule_.workers[w][i]; }

  /// A reduction's sums begin when the last of its replicas reaches it.
  void find_meetings() {
    if (schedule_.shape.replicas < 2) return;
    std::map<std::pair<int, std::size_t>, ActionPlace> last;  // by stage and number of the sum
    const auto key = [](int stage, std::size_t number) { return std::pair(stage, number); };
    const auto for_each_sum = [&](const auto& visit) {
      for (std::size_t w = 0; w < spans_.size(); ++w) {
        std::map<int, std::size_t> count;
        for (std::size_t i = 0; i < spans_[w].size(); ++i)
          if (action(w, i).kind == ActionKind::Reduce)
            visit(w, i, key(action(w, i).stage, count[action(w, i).stage]++));
      }
    };
    for_each_sum([&](std::size_t w, std::size_t i, const auto& sum) {
      ActionPlace& place = last.try_emplace(sum, kNowhere).first->second;
      if (place == kNowhere || span(place).begin < spans_[w][i].begin)
        place = {static_cast<int>(w), static_cast<int>(i)};
    });
    for_each_sum([&](std::size_t w, std::size_t i, const auto& sum) {
      meetings_[{w, i}] = last.at(sum);
    });
  }

  /// A gradient of shared weights is waited for behind the pass that adds it, or before the update.
  void find_gradients(const ProvedSchedule& proved) {
    const LentWeights lent(schedule_, index_, proved.versions);
    const LateGradients late(proved);
    for_each_action(schedule_, [&](ActionPlace place, const Action& action) {
      for (const Loan& loan : lent.loans())
        if (const ActionPlace giver = lent.giver(action, loan.to); giver != kNowhere)
          gradients_[{place.first, place.second + 1}] = giver;
      for (const LateGradient& each : late.taken(place)) gradients_[place] = each.pass;
    });
  }

  const Span& span(ActionPlace place) const {
    return spans_[as_size(place.first)][as_size(place.second)];
  }

  /// The waits before and in an action of a worker that was free from `free` on.
  std::vector<Wait> waits(std::size_t w, std::size_t i, double free) const {
    std::vector<Wait> all;
    const Span& own = spans_[w][i];
    ActionPlace input = index_.input_of(action(w, i));
    if (const auto given = gradients_.find({static_cast<int>(w), static_cast<int>(i)});
        input == kNowhere && given != gradients_.end())
      input = given->second;
    if (input != kNowhere && as_size(input.first) != w && own.begin > free)
      all.push_back({{free, own.begin}, input});
    if (const auto meeting = meetings_.find({w, i}); meeting != meetings_.end())
      if (span(meeting->second).begin > own.begin)
        all.push_back(
            {{own.begin, std::min(own.end, span(meeting->second).begin)}, meeting->second});
    return all;
  }

  void add(std::vector<Idle>& all, std::size_t w, std::size_t i, const Wait& wait) const {
    Idle& idle = all.emplace_back(
        Idle{static_cast<int>(w), wait.time.begin, wait.time.end, i, wait.sender.first});
    blame(wait, wait.time, 0, idle.parts);
  }

  /// Adds the parts of `time` in which a worker waits so.
  void blame(const Wait& wait, Interval time, std::size_t depth, BlameParts& parts) const {
    const Span& sender = span(wait.sender);
    const bool meets = action_at(schedule_, wait.sender).kind == ActionKind::Reduce;
    const double left = meets ? sender.begin : sender.end - sender.sending;
    part_of(parts, Blame::Link) += time.within(left, time.end).length();
    const Interval before = time.within(time.begin, left);
    if (before.length() > 0) blame_worker(as_size(wait.sender.first), before, depth + 1, parts);
  }

  /// Adds the parts of `time` in which somebody waits for this worker.
  void blame_worker(std::size_t w, Interval time, std::size_t depth, BlameParts& parts) const {
    const auto& spans = spans_[w];
    double known = 0;
    const auto first = std::ranges::upper_bound(spans, time.begin, {}, &Span::end) - spans.begin();
    for (auto i = static_cast<std::size_t>(first); i < spans.size(); ++i) {
      const double free = i == 0 ? 0 : spans[i - 1].end;
      if (free >= time.end) break;
      for (const Wait& wait : waits(w, i, free)) {
        const Interval part = time.within(wait.time.begin, wait.time.end);
        if (part.length() <= 0) continue;
        known += part.length();
        if (depth > spans_.size())  // clocks that differ can make a circle of waits
          part_of(parts, Blame::Order) += part.length();
        else
          blame(wait, part, depth, parts);
      }
      known += blame_action(w, i, time, parts);
    }
    part_of(parts, Blame::Other) += std::max(0.0, time.length() - known);
  }

  /// Adds the parts of an action that lie in `time`; returns their length.
  double blame_action(std::size_t w, std::size_t i, Interval time, BlameParts& parts) const {
    const Span& own = spans_[w][i];
    const double computes = own.begin + own.decoding;
    const double encodes = own.end - own.sending - own.encoding;
    const double median =
        medians_[as_size(action(w, i).stage)][static_cast<std::size_t>(action(w, i).kind)];
    const double coding = time.within(own.begin, computes).length() +
                          time.within(encodes, encodes + own.encoding).length();
    // A reduction works once the last replica has reached it; before, it waits, as waits() says.
    const auto meeting = meetings_.find({w, i});
    const bool reduces = meeting != meetings_.end();
    const double works = reduces ? std::max(computes, span(meeting->second).begin) : computes;
    const double in_time = reduces ? encodes : std::min(computes + median, encodes);
    const double order = time.within(works, in_time).length();
    const double straggling = time.within(in_time, encodes).length();
    const double sending = time.within(own.end - own.sending, own.end).length();
    part_of(parts, Blame::Codec) += coding;
    part_of(parts, Blame::Order) += order;
    part_of(parts, Blame::Straggler) += straggling;
    part_of(parts, Blame::Link) += sending;
    return coding + order + straggling + sending;
  }

  const Schedule& schedule_;
  const Spans& spans_;
  const PassIndex& index_;
  const std::vector<StageMedians> medians_;
  std::map<ActionPlace, ActionPlace> gradients_;  ///< of shared weights that are waited for
  /// Of a reduction, the last replica's.
  std::map<std::pair<std::size_t, std::size_t>, ActionPlace> meetings_;
};

}  // namespace

const char* blame_name(Blame blame, MessagePath messages) {
  switch (blame) {
    case Blame::Link: return messages == MessagePath::HandedOver ? "handover" : "link";
    case Blame::Straggler: return "straggler";
    case Blame::Order: return "order";
    case Blame::Codec: return "codec";
    case Blame::Other: return "other";
  }
  return "";
}

Blame Idle::blame() const {
  const auto largest = std::ranges::max_element(parts) - parts.begin();
  return kBlames[static_cast<std::size_t>(largest)];
}

std::vector<Idle> idle_times(const ProvedSchedule& proved, const Spans& spans) {
  return IdleTimes(proved, spans).all();
}

std::vector<StageMedians> median_seconds(const Schedule& schedule, const Spans& spans) {
  std::vector<std::array<std::vector<double>, kActionKinds.size()>> all(
      as_size(schedule.shape.stages));
  for (std::size_t w = 0; w < spans.size(); ++w)
    for (std::size_t i = 0; i < spans[w].size(); ++i) {
      const Action& action = schedule.workers[w][i];
      all[as_size(action.stage)][static_cast<std::size_t>(action.kind)].push_back(
          computing(spans[w][i]));
    }
  std::vector<StageMedians> medians(all.size());
  for (std::size_t stage = 0; stage < all.size(); ++stage)
    for (std::size_t kind = 0; kind < all[stage].size(); ++kind)
      medians[stage][kind] = median(std::move(all[stage][kind]));
  return medians;
}

}  // namespace pipewright
