// SPDX-License-Identifier: Apache-2.0
/// Claims of several tables, decided together: one family over which Holm's correction goes.
#pragma once

#include <string>
#include <vector>

#include "core/config/value.h"

namespace pipewright {

/// Decides the comparisons of means of all claims of `tables`, each what `table --format json`
/// printed, or only of those whose sentence begins with one of `ids` and a colon. One that has not
/// been made, because runs are missing, counts with a p of 1, so that no decision depends on it
/// later. Holm's correction is at 5 % over all of them. A comparison is held if its corrected p
/// decides for the claimed side and, of `less`, the exact sign-flip p is at most 5 %, too, where
/// there is one (not of more than 40 pairs, nor of Welch's test); it is not held if it decides for
/// the other side.
///
/// Returns {comparisons, claims: [{table, say, tests}]}: the number of the table from 0, and the
/// tests as they came with `p_holm` and `verdict` of the family. Throws Error{Data} for a mapping
/// that is no table, Error{Experiment} for an id that no claim has.
Value decided_together(const std::vector<Value>& tables, const std::vector<std::string>& ids);

}  // namespace pipewright
