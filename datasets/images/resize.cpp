// SPDX-License-Identifier: Apache-2.0
#include "datasets/images/resize.h"

#include <algorithm>
#include <cmath>

namespace pipewright {
namespace {

constexpr int kBinaryPlaces = 22;  // with 8 bits of pixel and 2 of overshoot, sums fit into 32 bits

std::uint8_t rounded(std::int32_t sum) {
  return static_cast<std::uint8_t>(std::clamp(sum >> kBinaryPlaces, 0, 255));
}

std::int32_t fixed_point(double weight) {
  return static_cast<std::int32_t>(0.5 + weight * (1 << kBinaryPlaces));
}

/// Computes the pixels of one output row; `step` is the distance between input pixels.
void filter_line(const Taps& taps, const std::uint8_t* in, std::int64_t step, std::uint8_t* out) {
  for (std::int64_t x = 0; x < taps.size(); ++x) {
    const Taps::Span span = taps[x];
    const std::uint8_t* pixel = in + span.first * step;
    std::int32_t sum = 1 << (kBinaryPlaces - 1);
    for (std::int64_t k = 0; k < span.count; ++k, pixel += step) sum += *pixel * span.weights[k];
    out[x] = rounded(sum);
  }
}

}  // namespace

Taps::Taps(std::int64_t from, std::int64_t to, std::int64_t first, std::int64_t count)
    : copies_(from == to) {
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  const double reach = std::max(scale, 1.0), inverse = 1.0 / reach;
  most_ = 2 * static_cast<std::int64_t>(std::ceil(reach)) + 1;
  weights_.resize(static_cast<std::size_t>(count * most_));
  std::vector<double> exact(static_cast<std::size_t>(most_));
  for (std::int64_t i = 0; i < count; ++i) {
    const double centre = (static_cast<double>(first + i) + 0.5) * scale;
    const auto begin = std::max<std::int64_t>(static_cast<std::int64_t>(centre - reach + 0.5), 0);
    const auto end = std::min(static_cast<std::int64_t>(centre + reach + 0.5), from);
    double sum = 0;
    for (std::int64_t k = 0; k < end - begin; ++k) {
      const double distance = (static_cast<double>(k + begin) - centre + 0.5) * inverse;
      const double weight = std::max(1.0 - std::abs(distance), 0.0);
      exact[static_cast<std::size_t>(k)] = weight;
      sum += weight;
    }
    for (std::int64_t k = 0; k < end - begin; ++k)
      weights_[static_cast<std::size_t>(i * most_ + k)] =
          fixed_point(exact[static_cast<std::size_t>(k)] / sum);
    first_.push_back(begin);
    count_.push_back(end - begin);
  }
}

Taps::Span Taps::operator[](std::int64_t output) const {
  const auto i = static_cast<std::size_t>(output);
  return {first_[i], count_[i], weights_.data() + output * most_};
}

Resize::Resize(std::int64_t from_height, std::int64_t from_width, std::int64_t to_height,
               std::int64_t to_width, Box window)
    : rows_(from_height, to_height, window.top, window.height),
      columns_(from_width, to_width, window.left, window.width) {}

void Resize::apply(const Channel& in, std::uint8_t* out) const {
  const std::int64_t width = columns_.size(), last = rows_.size() - 1;
  const std::int64_t begin = rows_[0].first, end = rows_[last].first + rows_[last].count;
  std::vector<std::uint8_t> lines(static_cast<std::size_t>((end - begin) * width));
  for (std::int64_t y = begin; y < end; ++y)
    filter_line(columns_, in.first + y * in.to_next_row, in.to_next_column,
                lines.data() + (y - begin) * width);
  std::vector<std::int32_t> sums(static_cast<std::size_t>(width));
  for (std::int64_t y = 0; y <= last; ++y, out += width) {
    const Taps::Span span = rows_[y];
    std::fill(sums.begin(), sums.end(), 1 << (kBinaryPlaces - 1));
    const std::uint8_t* line = lines.data() + (span.first - begin) * width;
    for (std::int64_t k = 0; k < span.count; ++k, line += width)
      for (std::int64_t x = 0; x < width; ++x)
        sums[static_cast<std::size_t>(x)] += line[x] * span.weights[k];
    std::transform(sums.begin(), sums.end(), out, rounded);
  }
}

}  // namespace pipewright
