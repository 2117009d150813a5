// SPDX-License-Identifier: Apache-2.0
#include "core/stability/closed_loop.h"

#include <Eigen/LU>
#include <algorithm>
#include <cmath>

#include "core/base/as_size.h"

namespace pipewright {
namespace {

using Complex = std::complex<double>;
using StateMatrix = Eigen::Matrix<Complex, kStateParts, kStateParts>;
using StateVector = Eigen::Matrix<Complex, kStateParts, 1>;

StateMatrix matrix_of(const UpdateMap& update) {
  StateMatrix matrix;
  for (std::size_t r = 0; r < kStateParts; ++r)
    for (std::size_t c = 0; c < kStateParts; ++c)
      matrix(static_cast<int>(r), static_cast<int>(c)) = update.map[r][c];
  return matrix;
}

StateVector vector_of(const StateRow& row) {
  StateVector vector;
  for (std::size_t i = 0; i < kStateParts; ++i) vector(static_cast<int>(i)) = row[i];
  return vector;
}

/// [update n] the state before update n if a unit is injected at update `at` of every period, times
/// z a period.
std::vector<StateVector> response(const std::vector<UpdateMap>& updates, std::size_t at,
                                  Complex z) {
  StateMatrix period = StateMatrix::Identity();
  StateVector injected = StateVector::Zero();
  for (std::size_t n = 0; n < updates.size(); ++n) {
    const StateMatrix map = matrix_of(updates[n]);
    period = (map * period).eval();
    injected = (map * injected).eval();
    if (n == at) injected += vector_of(updates[n].of_gradient);
  }
  std::vector<StateVector> states{(z * StateMatrix::Identity() - period).inverse() * injected};
  for (std::size_t n = 0; n + 1 < updates.size(); ++n) {
    StateVector next = matrix_of(updates[n]) * states.back();
    if (n == at) next += vector_of(updates[n].of_gradient);
    states.push_back(next);
  }
  return states;
}

Complex product(const StateRow& row, const StateVector& state) {
  Complex sum = 0;
  for (std::size_t i = 0; i < kStateParts; ++i) sum += row[i] * state(static_cast<int>(i));
  return sum;
}

}  // namespace

ClosedLoop::ClosedLoop(const Recurrence& recurrence, const LinearRule& rule,
                       const std::vector<int>& stages, const Hessian& hessian,
                       const LoopOptions& options)
    : decays_(options.decay_lr * (rule.l2 + rule.decoupled) > 0) {
  for (const int stage : stages) {
    StageLoop& loop = loops_.emplace_back();
    loop.first = updates_;
    loop.drift_decay = drift_decay_of(recurrence, stage);
    for (const StageUpdate& update : recurrence.stages[as_size(stage)]) {
      loop.updates.push_back(update_map(rule, options.decay_lr, update.scale, loop.drift_decay));
      ++updates_;
    }
  }
  const auto row = [&](const Reading& reading) {
    return reading_row(rule, options.decay_lr, recurrence.rules[as_size(reading.rule)], reading);
  };
  for (std::size_t own = 0; own < stages.size(); ++own) {
    int gradient = loops_[own].first;
    for (const StageUpdate& update : recurrence.stages[as_size(stages[own])]) {
      for (const GradientTerm& term : update.terms) {
        for (std::size_t other = 0; other < stages.size(); ++other) {
          if (as_size(stages[other]) >= term.forward.size()) continue;
          const Reading& read = term.forward[as_size(stages[other])];
          add(read, row(read), gradient, static_cast<int>(other),
              term.weight * hessian[own][other]);
        }
        const Reading& forward = term.forward[as_size(stages[own])];
        if (options.discrepancy == 0 || forward == term.backward) continue;
        for (std::size_t other = 0; other < stages.size(); ++other) {
          if (stages[other] != stages[own]) continue;
          const double delta = term.weight * options.discrepancy * hessian[own][other];
          add(forward, row(forward), gradient, static_cast<int>(other), delta);
          add(term.backward, row(term.backward), gradient, static_cast<int>(other), -delta);
        }
      }
      ++gradient;
    }
  }
}

void ClosedLoop::add(const Reading& reading, const StateRow& row, int gradient, int stage,
                     double factor) {
  if (factor == 0) return;
  StageLoop& loop = loops_[as_size(stage)];
  const auto length = static_cast<int>(loop.updates.size());
  const int period = floor_quotient(reading.version, length);
  loop.oldest = std::min(loop.oldest, reading.version);
  longest_ = std::max(longest_, std::abs(period));
  Reader reader{.gradient = gradient,
                .stage = stage,
                .update = reading.version - period * length,
                .period = period};
  for (std::size_t i = 0; i < kStateParts; ++i) {
    reader.row[i] = factor * row[i];
    if (row[i] != 0) loop.read[i] = true;
  }
  readers_.push_back(reader);
}

bool ClosedLoop::rests() const {
  constexpr double kOnCircle = 1e-9;
  for (const StageLoop& loop : loops_) {
    StateMatrix period = StateMatrix::Identity();
    for (const UpdateMap& update : loop.updates) period = (matrix_of(update) * period).eval();
    SquareMatrix<double> map(kStateParts);
    for (int r = 0; r < kStateParts; ++r)
      for (int c = 0; c < kStateParts; ++c) map.at(r, c) = period(r, c).real();
    int persisting = 0;
    for (const Complex& root : eigenvalues(map)) {
      if (std::abs(root) > 1 + kOnCircle) return false;
      if (std::abs(root) > 1 - kOnCircle) ++persisting;
    }
    if (persisting > 1) return false;
  }
  return true;
}

SquareMatrix<Complex> ClosedLoop::gain(Complex z) const {
  // [stage][update of the injection][update of the reading]
  std::vector<std::vector<std::vector<StateVector>>> responses;
  for (const StageLoop& loop : loops_) {
    auto& each = responses.emplace_back();
    for (std::size_t at = 0; at < loop.updates.size(); ++at)
      each.push_back(response(loop.updates, at, z));
  }
  std::vector<Complex> powers{1};
  for (int i = 0; i < longest_; ++i) powers.push_back(powers.back() / z);
  SquareMatrix<Complex> gain(updates_);
  for (const Reader& reader : readers_) {
    const Complex shift =
        reader.period <= 0 ? powers[as_size(-reader.period)] : 1.0 / powers[as_size(reader.period)];
    const auto& of_stage = responses[as_size(reader.stage)];
    for (std::size_t at = 0; at < of_stage.size(); ++at)
      gain.at(reader.gradient, loops_[as_size(reader.stage)].first + static_cast<int>(at)) +=
          shift * product(reader.row, of_stage[at][as_size(reader.update)]);
  }
  return gain;
}

/// Performs a period on one state of the whole: [stage][version − oldest] its states, of which the
/// newest is whole and older ones have the parts that are read.
class ClosedLoop::Walk {
 public:
  Walk(const ClosedLoop& loop, double lr) : loop_(loop), lr_(lr) {
    for (const StageLoop& stage : loop.loops_)
      for (int version = stage.oldest; version <= 0; ++version)
        for (std::size_t part = 0; part < kStateParts; ++part)
          if (version == 0 || stage.read[part])
            places_.push_back({as_size(static_cast<int>(&stage - loop.loops_.data())),
                               as_size(version - stage.oldest), part});
    readers_.resize(as_size(loop.updates_));
    for (const Reader& reader : loop.readers_) readers_[as_size(reader.gradient)].push_back(reader);
  }

  int size() const { return static_cast<int>(places_.size()); }

  /// The state after a period that began with a unit in one place.
  std::vector<double> from(int unit) {
    states_.clear();
    for (const StageLoop& stage : loop_.loops_)
      states_.emplace_back(as_size(1 - stage.oldest), StateRow{});
    at(places_[as_size(unit)], 0) = 1;
    perform();
    std::vector<double> after;
    for (const Place& place : places_)
      after.push_back(at(place, loop_.loops_[place.stage].updates.size()));
    return after;
  }

 private:
  struct Place {
    std::size_t stage = 0, version = 0, part = 0;
  };

  double& at(const Place& place, std::size_t later) {
    return states_[place.stage][place.version + later][place.part];
  }

  /// Each update waits until the versions that its gradient reads have been made.
  void perform() {
    for (bool progress = true; progress;) {
      progress = false;
      for (std::size_t s = 0; s < states_.size(); ++s)
        while (done(s) < loop_.loops_[s].updates.size() && advance(s)) progress = true;
    }
    for (std::size_t s = 0; s < states_.size(); ++s)
      PIPEWRIGHT_CHECK(done(s) == loop_.loops_[s].updates.size(), "stage ", s,
                       " reads versions that are not made before");
  }

  std::size_t done(std::size_t stage) const {
    return states_[stage].size() - as_size(1 - loop_.loops_[stage].oldest);
  }

  bool advance(std::size_t stage) {
    const StageLoop& loop = loop_.loops_[stage];
    const int gradient = loop.first + static_cast<int>(done(stage));
    double sum = 0;
    for (const Reader& reader : readers_[as_size(gradient)]) {
      const StageLoop& other = loop_.loops_[as_size(reader.stage)];
      const int version = reader.update + reader.period * static_cast<int>(other.updates.size());
      const auto& states = states_[as_size(reader.stage)];
      const auto place = as_size(version - other.oldest);
      if (place >= states.size()) return false;
      for (std::size_t i = 0; i < kStateParts; ++i) sum += reader.row[i] * states[place][i];
    }
    const UpdateMap& update = loop.updates[done(stage)];
    const StateRow before = states_[stage].back();
    StateRow& after = states_[stage].emplace_back();
    for (std::size_t r = 0; r < kStateParts; ++r) {
      after[r] = lr_ * sum * update.of_gradient[r];
      for (std::size_t c = 0; c < kStateParts; ++c) after[r] += update.map[r][c] * before[c];
    }
    return true;
  }

  const ClosedLoop& loop_;
  double lr_;
  std::vector<Place> places_;
  std::vector<std::vector<Reader>> readers_;  ///< [gradient]
  std::vector<std::vector<StateRow>> states_;
};

int ClosedLoop::states() const {
  return Walk(*this, 0).size();
}

SquareMatrix<double> ClosedLoop::matrix(double lr) const {
  Walk walk(*this, lr);
  SquareMatrix<double> matrix(walk.size());
  for (int column = 0; column < walk.size(); ++column) {
    const std::vector<double> after = walk.from(column);
    for (int row = 0; row < walk.size(); ++row) matrix.at(row, column) = after[as_size(row)];
  }
  return matrix;
}

}  // namespace pipewright
