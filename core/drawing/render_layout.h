// SPDX-License-Identifier: Apache-2.0
/// The layout of the SVG grid: the position of everything, and the text of its boxes.
#pragma once

#include <string>
#include <vector>

#include "core/drawing/render_labels.h"
#include "core/drawing/render_window.h"
#include "core/schedule/prove.h"

namespace pipewright {

namespace sizes {  // in pixels
inline constexpr double kMargin = 24;
inline constexpr double kHeading = 62;  ///< height of the title, the line below it and some space
inline constexpr double kLane = 40;
inline constexpr double kLaneGap = 8;
inline constexpr double kAxis = 34;
inline constexpr double kLegend = 34;
inline constexpr double kName = 12.5;   ///< text size of workers' names
inline constexpr double kNumber = 12;   ///< text size of mini-batch numbers
inline constexpr double kNote = 8.5;    ///< text size of notes below the numbers
inline constexpr double kSmall = 10;    ///< text size of axis, stages, table heads
inline constexpr double kUsual = 1040;  ///< width of the lanes if everything fits
inline constexpr double kWidest = 1400;
inline constexpr double kWidestSlot = 34;
}  // namespace sizes

/// A part of the window. If the page is not wide enough, parts are drawn below each other.
struct LayoutBlock {
  RenderWindow window;
  double y = 0;
};

/// Keeps references to the schedule and its versions.
struct GridLayout {
  GridLayout(const ProvedSchedule& proved, int minibatches);

  bool cut() const { return window.to < times.makespan; }
  double block_height() const;
  double x_of(const LayoutBlock& block, int slot) const;
  double y_of(const LayoutBlock& block, std::size_t row) const;
  /// Whether an action is drawn in this window. An action that takes no time belongs to the block
  /// that it ends.
  bool is_drawn(RenderWindow part, std::size_t worker, std::size_t position) const;

  /// The number in a box: "3", or "3.1" with micro-batches.
  std::string number_of(const Action& action) const;
  /// The note below the number: the stage if a worker has several, the loss if there are several,
  /// else the version read and the steps it is predicted ahead ("w2+3").
  std::string note_of(std::size_t worker, std::size_t position) const;
  enum class Note { None, Places, Versions };
  Note note() const;

  const Schedule& schedule;
  const RenderLabels labels;
  const Versions& versions;
  const SlotTimes times;
  const RenderWindow window;
  const RenderRows rows;
  std::vector<LayoutBlock> blocks;
  double left = 0, right = 0;  ///< ends of the widest block's lanes

 private:
  void measure();
  void cut_into_blocks(double least_slot);

  double slot_ = 0;  ///< width of a slot
};

}  // namespace pipewright
