// SPDX-License-Identifier: Apache-2.0
#include "core/drawing/render_layout.h"

#include <algorithm>

#include "core/base/text.h"
#include "core/drawing/render_page.h"

namespace pipewright {

using namespace sizes;

GridLayout::GridLayout(const ProvedSchedule& proved, int minibatches)
    : schedule(proved.schedule),
      labels(schedule),
      versions(proved.versions),
      times(slot_times(schedule)),
      window(render_window(schedule, times, minibatches)),
      rows(RenderRows::of_equal_actions(schedule, [&](std::size_t worker, std::size_t twin) {
        return times.start[worker] == times.start[twin];
      })) {
  measure();
}

double GridLayout::block_height() const {
  return static_cast<double>(rows.size()) * (kLane + kLaneGap) + kAxis;
}

double GridLayout::x_of(const LayoutBlock& block, int slot) const {
  return left + slot_ * (slot - block.window.from);
}

double GridLayout::y_of(const LayoutBlock& block, std::size_t row) const {
  return block.y + static_cast<double>(row) * (kLane + kLaneGap);
}

bool GridLayout::is_drawn(RenderWindow part, std::size_t worker, std::size_t position) const {
  const int start = times.start[worker][position];
  const int slots = slots_of(schedule.workers[worker][position].kind);
  if (start == kNeverStarts) return false;
  if (slots > 0) return start < part.to && start + slots > part.from;
  return start <= part.to && (start > part.from || part.from == 0);
}

void GridLayout::measure() {
  double names = 0, least_slot = 6;
  for (const std::size_t worker : rows.workers()) {
    names = std::max({names, text_width(labels.worker(worker), kName),
                      labels.plain() ? 0 : text_width(labels.stages(worker), kSmall)});
    for (std::size_t i = 0; i < schedule.workers[worker].size(); ++i) {
      const Action& action = schedule.workers[worker][i];
      const int slots = slots_of(action.kind);
      if (slots == 0 || !is_drawn(window, worker, i)) continue;
      const double needed = std::max(text_width(number_of(action), kNumber) + 5,
                                     text_width(note_of(worker, i), kNote) + 4);
      least_slot = std::max(least_slot, needed / slots);
    }
  }
  left = kMargin + names + 14;
  cut_into_blocks(least_slot);
  right = x_of(blocks.front(), blocks.front().window.to);
}

/// Cuts the window into as few blocks as the width of the numbers and of the page allow. All have
/// the same length but the last.
void GridLayout::cut_into_blocks(double least_slot) {
  const int slots = std::max(1, window.to - window.from);
  const int most = std::max(5, static_cast<int>(kWidest / least_slot) / 5 * 5);
  const int count = (slots + most - 1) / most;
  const int length = count == 1 ? slots : (slots + 5 * count - 1) / (5 * count) * 5;
  slot_ = std::clamp(kUsual / length, least_slot, std::max(least_slot, kWidestSlot));
  double y = kHeading;
  for (int from = window.from; from < window.from + slots; from += length) {
    blocks.push_back({{from, std::min(from + length, window.from + slots)}, y});
    y += block_height();
  }
}

std::string GridLayout::number_of(const Action& action) const {
  if (schedule.shape.microbatches == 1) return std::to_string(action.minibatch);
  return concat(action.minibatch, ".", action.microbatch);
}

GridLayout::Note GridLayout::note() const {
  if (labels.several_stages() || !schedule.auxiliary.empty()) return Note::Places;
  return schedule.shape.training ? Note::Versions : Note::None;
}

std::string GridLayout::note_of(std::size_t worker, std::size_t position) const {
  const Action& action = schedule.workers[worker][position];
  std::string text;
  switch (note()) {
    case Note::None: break;
    case Note::Places:
      if (labels.several_stages()) text += concat("s", action.stage);
      if (!schedule.auxiliary.empty() && is_part_of_backward(action.kind))
        text += concat("←", action.loss);
      break;
    case Note::Versions: {
      const WeightKey& key = versions.workers[worker][position].key;
      text = concat("w", key.version);
      if (key.ahead != 0) text += concat(key.ahead > 0 ? "+" : "", key.ahead);
    }
  }
  return text;
}

}  // namespace pipewright
