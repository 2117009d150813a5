// SPDX-License-Identifier: Apache-2.0
/// When weights that one stage lends to another cross (Skip::lent_bytes). The borrower computes
/// every micro-batch with the weights that the owner's forward of it reads, so they cross when
/// these are others than those of its forward before: they leave when the owner's forward begins.
/// The borrower sends their gradient once for each mini-batch, with its last backward of it; the
/// owner adds it when its own last gradient of the mini-batch is there. Whatever the order of
/// actions, the owner's forward begins before the borrower's, and its last gradient comes after the
/// borrower's, so no order that was possible without is a deadlock.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "core/schedule/dependencies.h"
#include "core/schedule/versions.h"

namespace pipewright {

struct ProvedSchedule;

/// Whether stages lend weights, or have copies of a parameter: if not, none of this is needed.
bool shares_weights(const PipelineShape& shape);

/// A parameter of stage `from`, its `parameter`th, that it lends to stage `to`.
struct Loan {
  int from = 0, to = 0;
  std::int64_t bytes = 0;
  int parameter = 0;
};

/// Those of a shape.
std::vector<Loan> loans_of(const PipelineShape& shape);

class LentWeights {
 public:
  /// The schedule may be one without these loans, as they are no part of its order.
  LentWeights(const Schedule& schedule, const PassIndex& index, const Versions& versions,
              std::vector<Loan> loans);
  LentWeights(const Schedule& schedule, const PassIndex& index, const Versions& versions)
      : LentWeights(schedule, index, versions, loans_of(schedule.shape)) {}

  const std::vector<Loan>& loans() const { return loans_; }
  /// Whether the weights cross for this forward of a stage that borrows them from stage `from`.
  bool take(const Action& forward, int from) const {
    return crosses(takes_, {from, forward.stage}, slots_.forward(forward, forward.stage));
  }
  /// Whether their gradient crosses with this backward of such a stage.
  bool give(const Action& backward, int from) const {
    return crosses(gives_, {from, backward.stage}, slots_.backward(backward, backward.stage));
  }
  /// The backward of stage `to` that has given the gradient which this action of its owner adds;
  /// kNowhere if it adds none.
  ActionPlace giver(const Action& action, int to) const;

 private:
  using Crossings = std::map<std::pair<int, int>, std::vector<bool>>;  ///< owner, borrower → slots
  static bool crosses(const Crossings& all, std::pair<int, int> edge, std::size_t slot) {
    const auto found = all.find(edge);
    return found != all.end() && slot < found->second.size() && found->second[slot];
  }
  void mark(const Schedule& schedule, const PassIndex& index, const Versions& versions, Loan loan);
  /// [PassSlots::backward() of the owner's last action that makes a gradient of a mini-batch]
  using Givers = std::map<std::pair<int, int>, std::map<std::size_t, ActionPlace>>;

  PassSlots slots_;
  std::vector<Loan> loans_;
  Crossings takes_, gives_;
  Givers givers_;
};

/// The bytes that stages hold of weights that they borrow, followed through the actions of their
/// worker: the copies that kept forwards have read and the newest one, the sum of gradients until
/// it is complete, and at the owner the sum that its backward adds. Of parameters of which stages
/// have copies (late_gradients.h), the gradient that a backward copies to send it to each other
/// copy, and those that an update takes, before and in the sum. Messages that wait to be taken are
/// not counted.
class BorrowedBytes {
 public:
  explicit BorrowedBytes(const ProvedSchedule& proved);
  /// Of these loans in the place of the schedule's.
  BorrowedBytes(const ProvedSchedule& proved, std::vector<Loan> loans);

  void begin(const Action& action);
  /// `last`: no later pass of the stage reads what its forward of this micro-batch has kept.
  void end(const Action& action, bool last);
  std::int64_t of(int stage, int replica) const;
  /// The copies and sums of one of the loans that a stage of it, owner or borrower, holds.
  int of_loan(std::size_t loan, int stage, int replica) const;
  /// Of all stages that the actions were of.
  std::int64_t all() const;

 private:
  struct Held {
    std::vector<int> readers;  ///< kept forwards that have read each copy, the newest last
    std::map<std::size_t, std::size_t> copy_of;  ///< PassSlots::forward() → into `readers`
    int copies = 0;                              ///< that are held
    bool sum = false;                            ///< one of gradients is
  };

  void hold_late(const Action& action, bool begins);

  PassSlots slots_;
  LentWeights lent_;
  std::map<int, std::int64_t> copies_;              ///< stage → bytes of a gradient of its copies
  std::map<std::pair<int, int>, int> late_;         ///< (stage, replica) → such gradients
  std::map<std::tuple<int, int, int>, Held> held_;  ///< by loan, stage and replica
};

/// The most bytes that the stage of replica 0 holds so; 0 where no stage shares weights.
std::int64_t most_borrowed(const ProvedSchedule& proved, int stage);

}  // namespace pipewright
