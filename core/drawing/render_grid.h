// SPDX-License-Identifier: Apache-2.0
/// The terminal grid as lines of columns, before it is cut to the width of a terminal.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/drawing/render.h"
#include "core/drawing/render_labels.h"
#include "core/drawing/render_window.h"

namespace pipewright {

/// One column of one line: a character and its ANSI colour (0: the terminal's own).
struct Glyph {
  std::string text = " ";
  int color = 0;
};
using GlyphLine = std::vector<Glyph>;

/// A slot takes as many columns as the longest label, and one before it for the boundary with the
/// slot before. On boundaries are the updates, which take no time, and the marks of the culprit.
/// Throws Error{Data} with lines and bytes if it does not fit into memory.
class RenderGrid {
 public:
  RenderGrid(const Schedule& schedule, const RenderLabels& labels, const RenderOptions& options);

  const GlyphLine& header() const { return header_; }
  const std::vector<GlyphLine>& workers() const { return lines_; }
  /// Columns at which a line may be cut, ascending; the last one is its length.
  const std::vector<int>& cuts() const { return cuts_; }

 private:
  /// The columns [begin, end) of an action's label.
  struct Cell {
    int begin = 0;
    int end = 0;
    bool visible = false;
    bool boundary = false;  ///< the action takes no time: a sign at `begin`, no label
  };

  void check_size() const;
  bool is_culprit(std::size_t worker, std::size_t position) const;
  bool is_drawn(std::size_t worker, std::size_t position) const;
  void measure();
  int end_of(int slot) const;
  int begin_of(int slot) const;
  std::vector<std::size_t> never_of(std::size_t worker) const;
  Cell cell_of(std::size_t worker, std::size_t position) const;
  void draw_header();
  GlyphLine line_of(std::size_t worker) const;

  const Schedule& schedule_;
  const RenderLabels& labels_;
  const SlotTimes times_;
  const RenderWindow window_;
  const std::optional<ActionPlace> culprit_;
  int cell_ = 0;         ///< columns per slot, its boundary included
  int widened_at_ = -1;  ///< slot before which a culprit without duration gets columns
  int widened_by_ = 0;
  std::vector<std::vector<std::size_t>> never_;  ///< per worker: the actions under `?`
  int never_most_ = 0;
  GlyphLine header_;
  std::vector<GlyphLine> lines_;
  std::vector<int> cuts_;
};

}  // namespace pipewright
