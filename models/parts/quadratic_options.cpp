// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <string>

#include "core/base/random.h"
#include "core/base/wording.h"
#include "models/parts/quadratic_form.h"

namespace pipewright {
namespace {

constexpr const char* kSpectrumHelp =
    "Eigenvalues of H: a list of layers x width numbers, in the order of the layers; or {largest, "
    "smallest, seed} for random ones with uniform logarithms, of which the first is the largest "
    "and the last the smallest.";

struct RandomSpectrum {
  double largest = 1, smallest = 0.01;
  std::int64_t seed = 0;

  Value as_value() const {
    Value value = Value::mapping();
    value.at_or_add("largest") = Value::of(largest);
    value.at_or_add("smallest") = Value::of(smallest);
    value.at_or_add("seed") = Value::of(seed);
    return value;
  }

  std::vector<double> eigenvalues(std::size_t size) const {
    const RandomStream stream(static_cast<std::uint64_t>(seed), "quadratic.spectrum");
    std::vector<double> values(size, smallest);
    for (std::size_t i = 1; i + 1 < size; ++i)
      values[i] = smallest * std::pow(largest / smallest, stream.uniform(i));
    values.front() = largest;
    return values;
  }
};

RandomSpectrum read_random_spectrum(Options& options) {
  constexpr Range kEigenvalue{1e-9, 1e9};
  RandomSpectrum spectrum;
  Options given = options.section("spectrum", kSpectrumHelp);
  spectrum.largest =
      given.number("largest", spectrum.largest, "The largest eigenvalue.", kEigenvalue);
  spectrum.smallest =
      given.number("smallest", spectrum.smallest, "The smallest eigenvalue.", kEigenvalue);
  spectrum.seed =
      given.integer("seed", spectrum.seed, "Seed of the eigenvalues between them.", kNotNegative);
  if (spectrum.smallest > spectrum.largest)
    given.problem("smallest",
                  concat("is ", spectrum.smallest, "; expected at most the largest eigenvalue, ",
                         spectrum.largest));
  given.finish();
  return spectrum;
}

std::vector<double> read_list(Options& options, const Value& given, std::size_t size) {
  if (given.items.size() != size) {
    options.problem("spectrum", concat("has ", counted(given.items.size(), "number"), "; expected ",
                                       size, ": layers x width"));
    return std::vector<double>(size, 1);
  }
  return options.numbers("spectrum", std::vector<double>(size, 1), kSpectrumHelp, kNotNegative);
}

/// Reads the eigenvalues; none if H is given and they are not.
std::vector<double> read_spectrum(Options& options, std::size_t size, bool hessian_given) {
  const RandomSpectrum random;
  const Value given =
      options.any("spectrum", hessian_given ? Value::sequence() : random.as_value(), kSpectrumHelp);
  const bool list = given.is(Value::Kind::Sequence);
  if (hessian_given) {
    if (!list || !given.items.empty())
      options.problem("spectrum", "is given besides a hessian; expected one of the two");
    return {};
  }
  if (!options.given("spectrum")) return random.eigenvalues(size);
  if (given.is(Value::Kind::Mapping)) return read_random_spectrum(options).eigenvalues(size);
  if (list) return read_list(options, given, size);
  options.problem("spectrum",
                  concat("is ", given.shown(),
                         "; expected a list of numbers, or {largest: 1, smallest: 0.01, seed: 0}"));
  return std::vector<double>(size, 1);
}

/// Reads the numbers of row `number` into H. Returns false if there is a problem with them.
bool read_row(Options& options, const Value& row, std::size_t number, FormMatrix& hessian) {
  const std::string name = concat("hessian[", number, "]");
  if (!row.is(Value::Kind::Sequence)) {
    options.problem(
        name, concat("is ", row.shown(), "; expected a list of ", counted(hessian.size, "number")));
    return false;
  }
  if (row.items.size() != hessian.size) {
    options.problem(name, concat("has ", counted(row.items.size(), "number"), "; expected ",
                                 hessian.size, ": layers x width"));
    return false;
  }
  for (std::size_t column = 0; column < hessian.size; ++column) {
    const Value& item = row.items[column];
    const bool whole = item.is(Value::Kind::Integer);
    if (!whole && !item.is(Value::Kind::Number)) {
      options.problem(name, concat("has ", item.shown(), "; expected numbers only"));
      return false;
    }
    hessian.at(number, column) = whole ? static_cast<double>(item.integer) : item.number;
  }
  return true;
}

bool check_symmetry(Options& options, const FormMatrix& hessian) {
  for (std::size_t row = 0; row < hessian.size; ++row)
    for (std::size_t column = 0; column < row; ++column) {
      const double below = hessian.at(row, column), above = hessian.at(column, row);
      if (below == above) continue;
      options.problem(concat("hessian[", row, "]"),
                      concat("has ", below, " at ", column, ", but hessian[", column, "] has ",
                             above, " at ", row, "; expected a symmetric matrix"));
      return false;
    }
  return true;
}

/// A of a given H; empty if there is a problem with it.
std::optional<FormMatrix> form_of_given(Options& options, const Value& given, std::size_t size) {
  if (!given.is(Value::Kind::Sequence)) {
    options.problem("hessian",
                    concat("is ", given.shown(), "; expected a list of rows: [[2, 1], [1, 2]]"));
    return std::nullopt;
  }
  if (given.items.size() != size) {
    options.problem("hessian", concat("has ", counted(given.items.size(), "row"), "; expected ",
                                      size, ": layers x width"));
    return std::nullopt;
  }
  FormMatrix hessian(size);
  for (std::size_t row = 0; row < size; ++row)
    if (!read_row(options, given.items[row], row, hessian)) return std::nullopt;
  if (!check_symmetry(options, hessian)) return std::nullopt;
  std::optional<FormMatrix> form = form_of_hessian(std::move(hessian));
  if (!form)
    options.problem("hessian",
                    "has a negative eigenvalue, so the loss has no minimum; expected a positive "
                    "semidefinite matrix");
  return form;
}

}  // namespace

FormMatrix read_quadratic_form(Options& options, std::size_t size) {
  const Value given =
      options.any("hessian", Value::sequence(),
                  "H itself, instead of a spectrum: a symmetric, positive semidefinite matrix of "
                  "layers x width rows: [[2, 1], [1, 2]]; [] = it has the spectrum.");
  const bool hessian_given = !given.is(Value::Kind::Sequence) || !given.items.empty();
  const std::vector<double> eigenvalues = read_spectrum(options, size, hessian_given);
  const bool coupled =
      options.flag("coupled", false,
                   "Whether the eigenvectors are a random orthogonal basis, so that every layer's "
                   "gradient depends on all layers. Otherwise they are the axes: eigenvalue i is "
                   "the curvature of parameter i.");
  const std::int64_t seed =
      options.integer("seed", 0, "Seed of the random orthogonal basis.", kNotNegative);
  if (coupled && hessian_given)
    options.problem("coupled", "is true, but a hessian says itself which parameters are coupled");
  if (hessian_given) return form_of_given(options, given, size).value_or(FormMatrix(size));
  if (!coupled) return form_of_eigenvalues(eigenvalues);
  return form_of_eigenvalues(eigenvalues,
                             random_orthogonal(size, static_cast<std::uint64_t>(seed)));
}

}  // namespace pipewright
