// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "core/drawing/render_page.h"
#include "core/page/chart.h"

namespace pipewright {
namespace {

bool is_whole(double value) {
  return value == std::floor(value);
}

/// Powers of ten between the ends; 2 and 5 times them where there would be few.
void add_log_ticks(AxisScale& scale) {
  const auto first = static_cast<int>(std::floor(std::log10(scale.low))),
             last = static_cast<int>(std::ceil(std::log10(scale.high)));
  const int step = std::max(1, (last - first + 7) / 8);
  const bool few = last - first <= 3;
  for (int power = first; power <= last; power += step)
    for (const int factor : {1, 2, 5}) {
      const double tick = factor * std::pow(10, power);
      const bool inside = tick >= scale.low * (1 - 1e-9) && tick <= scale.high * (1 + 1e-9);
      if (inside && (few || factor == 1)) scale.ticks.push_back(tick);
    }
}

std::vector<double> finite_values(const std::vector<double>& values, bool log) {
  std::vector<double> some;
  for (const double value : values)
    if (std::isfinite(value) && (!log || value > 0)) some.push_back(value);
  return some;
}

}  // namespace

double AxisScale::share(double value) const {
  const double at =
      log ? std::log(value / low) / std::log(high / low) : (value - low) / (high - low);
  return std::isfinite(at) ? std::clamp(at, 0., 1.) : 0;
}

AxisScale scale_of(const std::vector<double>& values, bool log) {
  const std::vector<double> some = finite_values(values, log);
  AxisScale scale{.low = log ? 1. : 0., .high = log ? 10. : 1., .log = log};
  if (!some.empty()) {
    scale.low = *std::ranges::min_element(some);
    scale.high = *std::ranges::max_element(some);
  }
  if (log) {
    const double by = scale.low < scale.high ? std::pow(scale.high / scale.low, 0.04) : 2;
    scale.low /= by;
    scale.high *= by;
    add_log_ticks(scale);
    return scale;
  }
  if (!(scale.high - scale.low > 1e-12 * std::max(std::abs(scale.low), std::abs(scale.high)))) {
    const double by = scale.low == 0 ? 1 : std::abs(scale.low) / 10;
    scale.low -= by;
    scale.high += by;
  }
  double step = round_step(scale.high - scale.low, 6);
  if (std::ranges::all_of(some, is_whole)) step = std::max(step, 1.);  // epochs and stages
  const double margin = 0.04 * (scale.high - scale.low);
  const bool from_zero = scale.low >= 0 && scale.low - margin < 0;
  scale.low = from_zero ? 0 : scale.low - margin;
  scale.high += margin;
  const double first = std::ceil(scale.low / step - 1e-9);
  for (int i = 0; (first + i) * step <= scale.high; ++i)
    scale.ticks.push_back(first + i == 0 ? 0 : (first + i) * step);  // never −0
  return scale;
}

AxisScale x_scale(const Chart& chart) {
  std::vector<double> values;
  for (const ChartLine& line : chart.lines) {
    for (const ChartPoint& point : line.points) values.push_back(point.x);
    values.insert(values.end(), line.crosses.begin(), line.crosses.end());
  }
  if (chart.x_names.empty()) return scale_of(values, chart.log_x);
  AxisScale scale{.low = -0.5, .high = static_cast<double>(chart.x_names.size()) - 0.5};
  for (std::size_t i = 0; i < chart.x_names.size(); ++i)
    scale.ticks.push_back(static_cast<double>(i));
  return scale;
}

AxisScale y_scale(const Chart& chart) {
  std::vector<double> values;
  if (chart.from_zero) values.push_back(0);
  for (const ChartLine& line : chart.lines)
    for (const ChartPoint& point : line.points) {
      values.push_back(point.y);
      values.push_back(point.y + point.reach);
      values.push_back(point.y - point.reach);
    }
  return scale_of(values, chart.log_y);
}

}  // namespace pipewright
