/// Where everything of the SVG grid stands, and what is written into its boxes.
#pragma once

#include <string>
#include <vector>

#include "core/drawing/render_labels.h"
#include "core/drawing/render_window.h"
#include "core/schedule/versions.h"

namespace pipewright {

namespace sizes {  // in pixels
inline constexpr double kMargin = 24;
inline constexpr double kHeading = 62;  ///< title, the line below it, air
inline constexpr double kLane = 40;
inline constexpr double kLaneGap = 8;
inline constexpr double kAxis = 34;
inline constexpr double kLegend = 34;
inline constexpr double kName = 12.5;   ///< text: a worker's name
inline constexpr double kNumber = 12;   ///< text: a mini-batch's number
inline constexpr double kNote = 8.5;    ///< text: what stands below the number
inline constexpr double kSmall = 10;    ///< text: axis, stages, heads of the table
inline constexpr double kUsual = 1040;  ///< width of the lanes if all fits
inline constexpr double kWidest = 1400;
inline constexpr double kWidestSlot = 34;
}  // namespace sizes

/// A part of the window, drawn below the part before it when a page is not wide enough.
struct LayoutBlock {
  RenderWindow window;
  double y = 0;
};

class GridLayout {
 public:
  /// Keeps a reference to the schedule. Throws as resolve_versions().
  GridLayout(const Schedule& schedule, int minibatches);

  const Schedule& schedule() const { return schedule_; }
  const RenderLabels& labels() const { return labels_; }
  const Versions& versions() const { return versions_; }
  const SlotTimes& times() const { return times_; }
  const RenderWindow& window() const { return window_; }
  bool cut() const { return window_.to < times_.makespan; }

  const std::vector<LayoutBlock>& blocks() const { return blocks_; }
  double block_height() const;
  double left() const { return left_; }
  double right() const { return right_; }  ///< of the widest block's lanes
  double x_of(const LayoutBlock& block, int slot) const;
  double y_of(const LayoutBlock& block, std::size_t worker) const;
  /// What takes no time belongs to the block that it ends.
  bool is_drawn(RenderWindow window, std::size_t worker, std::size_t position) const;

  /// "3", or "3.1" with micro-batches.
  std::string number_of(const Action& action) const;
  /// Below the number: the stage where a worker has several, the loss where there are several, else
  /// the version read and the steps it is predicted ahead ("w2+3").
  std::string note_of(std::size_t worker, std::size_t position) const;
  enum class Note { None, Places, Versions };
  Note note() const;

 private:
  void measure();
  void cut_into_blocks(double least_slot);

  const Schedule& schedule_;
  const RenderLabels labels_;
  const Versions versions_;
  const SlotTimes times_;
  const RenderWindow window_;
  std::vector<LayoutBlock> blocks_;
  double slot_ = 0;  ///< width of a slot
  double left_ = 0;
  double right_ = 0;
};

}  // namespace pipewright
