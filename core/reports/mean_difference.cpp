// SPDX-License-Identifier: Apache-2.0
#include "core/reports/mean_difference.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/reports/moments.h"

namespace pipewright {
namespace {

constexpr std::size_t kFewest = 3;  // runs; an interval of two runs is too wide to tell anything

Interval around(double center, double standard_error, double degrees) {
  const double reach = standard_error == 0 ? 0 : student_t95(degrees) * standard_error;
  return {center - reach, center + reach};
}

bool has_each_once(const std::vector<std::string>& seeds) {
  return std::set<std::string>(seeds.begin(), seeds.end()).size() == seeds.size();
}

/// Differences a − b for the seeds that are in both.
std::vector<double> paired(const SeededValues& a, const SeededValues& b) {
  if (!has_each_once(a.seeds) || !has_each_once(b.seeds)) return {};
  std::map<std::string, double> of_b;
  for (std::size_t i = 0; i < b.seeds.size(); ++i) of_b.emplace(b.seeds[i], b.values[i]);
  std::vector<double> differences;
  for (std::size_t i = 0; i < a.seeds.size(); ++i)
    if (const auto other = of_b.find(a.seeds[i]); other != of_b.end())
      differences.push_back(a.values[i] - other->second);
  return differences;
}

}  // namespace

std::optional<Interval> mean_difference(const SeededValues& a, const SeededValues& b) {
  if (const std::vector<double> differences = paired(a, b); differences.size() >= kFewest) {
    const Moments m = moments_of(differences);
    return around(m.mean, std::sqrt(m.variance / m.count), m.count - 1);
  }
  if (a.values.size() < kFewest || b.values.size() < kFewest) return std::nullopt;
  const Moments x = moments_of(a.values), y = moments_of(b.values);
  const double of_x = x.variance / x.count, of_y = y.variance / y.count, sum = of_x + of_y;
  const double degrees =
      sum * sum /
      (of_x * of_x / (x.count - 1) + of_y * of_y / (y.count - 1));  // Welch–Satterthwaite
  return around(x.mean - y.mean, std::sqrt(sum), degrees);
}

double student_t95(double degrees_of_freedom) {
  constexpr std::array<std::pair<double, double>, 35> kQuantiles{{
      {1, 12.7062}, {2, 4.3027},  {3, 3.1824},   {4, 2.7764},    {5, 2.5706},   {6, 2.4469},
      {7, 2.3646},  {8, 2.3060},  {9, 2.2622},   {10, 2.2281},   {11, 2.2010},  {12, 2.1788},
      {13, 2.1604}, {14, 2.1448}, {15, 2.1314},  {16, 2.1199},   {17, 2.1098},  {18, 2.1009},
      {19, 2.0930}, {20, 2.0860}, {21, 2.0796},  {22, 2.0739},   {23, 2.0687},  {24, 2.0639},
      {25, 2.0595}, {26, 2.0555}, {27, 2.0518},  {28, 2.0484},   {29, 2.0452},  {30, 2.0423},
      {40, 2.0211}, {60, 2.0003}, {120, 1.9799}, {1000, 1.9623}, {1e6, 1.9600},
  }};
  PIPEWRIGHT_CHECK(degrees_of_freedom >= 1, degrees_of_freedom);
  double quantile = 0;
  for (const auto& [degrees, t] : kQuantiles)
    if (degrees <= degrees_of_freedom) quantile = t;
  return quantile;
}

}  // namespace pipewright
