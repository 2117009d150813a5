// SPDX-License-Identifier: Apache-2.0
// Every scheme with every optimizer converges 1 % inside each edge and diverges 1 % outside it,
// when its actions are performed one after the other.
#include <gtest/gtest.h>

#include <optional>

#include "core/schedule/prove.h"
#include "tests/unit/stability/action_walk.h"
#include "tests/unit/stability/dynamics.h"

namespace pipewright {
namespace {

constexpr int kStages = 3;
constexpr int kMinibatches = 1600;
const std::vector<WalkedSgd> kWalked{{0}, {0.5}, {0.9}, {0.9, true}};

LinearRule rule_of(const WalkedSgd& sgd) {
  return sgd.nesterov ? nesterov_rule(sgd.momentum) : momentum_rule(sgd.momentum);
}

/// A scheme's schedule of many mini-batches in a shape, with an order to perform it in.
struct LongSchedule {
  SchemeReading reading;
  PipelineShape shape;
  Schedule schedule;
  std::vector<ActionPlace> order;

  LongSchedule(const SchemeCase& scheme, int microbatches)
      : reading(scheme.name, scheme.options),
        shape{.stages = scheme.name == "data_parallel" ? 1 : kStages,
              .microbatches = microbatches,
              .minibatches = kMinibatches,
              .first_minibatch = kLate} {
    shape.placement = reading.scheme->placement(shape.stages);
    schedule = reading.scheme->schedule(shape);
    order = prove(schedule).order;
  }

  Recurrence recurrence() const {
    return steady_recurrence(
        [&](int minibatches) {
          PipelineShape few = shape;
          few.minibatches = minibatches;
          return reading.scheme->schedule(few);
        },
        {.periodic = reading.scheme->repeats()});
  }
};

/// Whether some backward reads other weights than its forward.
bool reads_two_versions(const Recurrence& recurrence) {
  for (std::size_t stage = 0; stage < recurrence.stages.size(); ++stage)
    for (const StageUpdate& update : recurrence.stages[stage])
      for (const GradientTerm& term : update.terms)
        if (term.forward[stage] != term.backward) return true;
  return false;
}

void expect_edges_alone(const LongSchedule& of, const Dynamics& dynamics, const WalkedSgd& sgd) {
  std::vector<double> edges;
  for (int stage = 0; stage < of.shape.stages; ++stage)
    edges.push_back(edge_alone(dynamics, stage));
  for (const double factor : {0.99, 1.01}) {
    ActionWalk::Loss loss{.hessian = Hessian(edges.size(), std::vector<double>(edges.size())),
                          .discrepancy = dynamics.discrepancy};
    for (std::size_t k = 0; k < edges.size(); ++k) loss.hessian[k][k] = factor * edges[k];
    const ActionWalk walk(of.schedule, of.order, sgd, loss, 1);
    for (int stage = 0; stage < of.shape.stages; ++stage)
      EXPECT_EQ(walk.growth(stage) > 0, factor > 1)
          << "stage " << stage << ", edge " << edges[as_size(stage)] << ", factor " << factor
          << ", growth " << walk.growth(stage);
  }
}

void expect_coupled_edge(const LongSchedule& of, const Dynamics& dynamics, const WalkedSgd& sgd) {
  const Hessian hessian =
      of.shape.stages == 1 ? Hessian{{2}} : Hessian{{2, 1, 0.5}, {1, 3, 1}, {0.5, 1, 1.5}};
  const double edge = coupled_edge(dynamics, hessian);
  for (const double factor : {0.99, 1.01}) {
    const ActionWalk::Loss loss{.hessian = hessian, .discrepancy = dynamics.discrepancy};
    const ActionWalk walk(of.schedule, of.order, sgd, loss, factor * edge);
    double growth = walk.growth(0);  // a stage may not depend on the one that diverges
    for (int stage = 1; stage < of.shape.stages; ++stage)
      growth = std::max(growth, walk.growth(stage));
    EXPECT_EQ(growth > 0, factor > 1)
        << "coupled edge " << edge << ", factor " << factor << ", growth " << growth;
  }
}

void expect_change_at_the_edges(const SchemeCase& scheme) {
  for (const int microbatches : {1, kStages}) {
    std::optional<LongSchedule> of;
    try {
      of.emplace(scheme, microbatches);
    } catch (const Error& error) {
      ASSERT_EQ(error.kind(), ErrorKind::Experiment);  // a shape that the scheme does not have
      continue;
    }
    if (scheme.options.find("law") != std::string::npos) {
      EXPECT_THROW(of->recurrence(), Error) << "drawn delays have no steady state";
      continue;
    }
    const Recurrence recurrence = of->recurrence();
    const bool mismatch = reads_two_versions(recurrence);  // otherwise Δ says nothing
    for (const WalkedSgd& sgd : kWalked)
      for (const double discrepancy : mismatch ? std::vector{0.0, 0.7} : std::vector{0.0}) {
        SCOPED_TRACE(concat(scheme_text(scheme), ", ", microbatches, " micro-batches, momentum ",
                            sgd.momentum, sgd.nesterov ? " Nesterov" : "", ", discrepancy ",
                            discrepancy));
        const Dynamics dynamics{
            .recurrence = recurrence, .rule = rule_of(sgd), .discrepancy = discrepancy};
        expect_edges_alone(*of, dynamics, sgd);
        expect_coupled_edge(*of, dynamics, sgd);
      }
  }
}

TEST(StabilityOfSchemes, ChangesAtTheEdgesOfASchemeOfEachKindWhenActionsArePerformed) {
  for (const SchemeCase& scheme : scheme_of_each_kind()) expect_change_at_the_edges(scheme);
}

TEST(StabilityOfSchemes, ChangesAtTheEdgesOfEverySchemeWhenActionsArePerformed) {
  for (const SchemeCase& scheme : every_scheme()) expect_change_at_the_edges(scheme);
}

}  // namespace
}  // namespace pipewright
