// SPDX-License-Identifier: Apache-2.0
/// What is done to a stage's gradient g before the update of W, whose forward read W_read, and to
/// the update.
///   clip          g ← g min(1, c/(‖g‖ + 10⁻⁶)), the norm over the stage or the model
///   dc_asgd       g ← g + λ g⊙g⊙(W − W_read);  adaptive: q ← m q + (1 − m) g⊙g, λ/√(q + ε) for λ
///   gap_aware     g ← g / (1 + |W − W_read| / (η_max (√(s/(1 − βⁿ)) + ε))), n updates having run;
///                 after an update with rate η: s ← β s + (1 − β)((W_before − W_after)/η)²
///   error_feedback  the update u = W^(n) − W^(n+1) that the optimizer makes becomes u + c (u −
///   u'),
///                 u' being the optimizer's before; the first one of a run stays as it is
///   staleness_lr  the update's rate is η / max(1, τ)^ρ, τ the updates since the version that was
///                 read, less the steps that it was predicted
#pragma once

#include "experiment.h"
#include "optimizers.h"

namespace oracle {

/// The gradient after all rules of the experiment, in order; `state` holds W and what rules keep.
/// `model_square` is ‖g‖² over all stages before any rule; a rule over the model stands first.
Tensors ruled(const Experiment& experiment, State& state, const Tensors& read, double model_square,
              Tensors gradient);

/// ‖g‖² of a stage.
double square_of(const Tensors& gradient);

/// What rules keep after the update from `before` to `after` with that rate, and what one of them
/// makes of `after`; each sees what those before it have made.
void note_step(const Experiment& experiment, const State& before, State& after, double rate);

/// The factor of the rate of an update whose gradient is that stale.
double rate_of_staleness(const Experiment& experiment, int staleness);

}  // namespace oracle
