// SPDX-License-Identifier: Apache-2.0
// Prints what core/statistics computes of numbers that statistics_test.py gives as JSON on standard
// input: {"a": […], "b": […], "margin": m, "p": […], "hits": k, "count": n}.
#include "core/statistics/tests.h"

#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

using nlohmann::json;
using namespace pipewright;

namespace {

json values_of(const MeanDifference& difference, double margin) {
  json values{{"mean", difference.mean},
              {"degrees", difference.degrees},
              {"p", two_sided_p(difference)},
              {"equivalence", equivalence_p(difference, margin)}};
  for (const double confidence : {0.9, 0.95}) {
    const Interval interval = interval_of(difference, confidence);
    values["intervals"].push_back({interval.low, interval.high});
  }
  return values;
}

}  // namespace

int main() {
  const json given = json::parse(std::cin);
  const auto a = given["a"].get<std::vector<double>>(), b = given["b"].get<std::vector<double>>();
  std::vector<double> differences;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) differences.push_back(a[i] - b[i]);
  const Interval share = proportion_interval(given["hits"], given["count"], 0.95);
  const json found{{"paired", values_of(paired_difference(differences), given["margin"])},
                   {"welch", values_of(welch_difference(a, b), given["margin"])},
                   {"signs", sign_flip_p(differences)},
                   {"correlation", correlation(std::span(a).first(differences.size()),
                                               std::span(b).first(differences.size()))},
                   {"holm", holm_adjusted(given["p"].get<std::vector<double>>())},
                   {"share", {share.low, share.high}},
                   {"effect", detectable_effect(differences.size(), 0.05, 0.8)}};
  std::cout << found.dump() << "\n";
}
