// SPDX-License-Identifier: Apache-2.0
/// Decides what is left to do in a folder that has a run already (`--resume`).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/config/value.h"
#include "core/experiment/experiment.h"
#include "core/records/run_folder.h"

namespace pipewright {

enum class Resumption : std::uint8_t {
  Begin,    ///< there is no run
  Leave,    ///< the run is done, and is the requested one
  Compare,  ///< as Leave, if the files at its changed paths have the same content
  GoOn,     ///< the run is not done
  Prolong   ///< the run is done, but more epochs are requested
};

struct ResumptionChoice {
  Resumption what = Resumption::GoOn;
  std::string remark;  ///< how the finished run differs from the request; or ""
};

/// Chooses what to do. `run` is the folder's run.json. Throws Error{Experiment} that names the
/// differing options if the run is of another experiment, or was finished in another way.
ResumptionChoice resumption(const RunFolder& folder, const Value& run,
                            const Experiment& experiment);

/// Throws Error{Experiment} if the run's data or weights had another content than now. `contents`:
/// their present digests (contents.h).
void check_contents(const RunFolder& folder, const Value& run, const Value& contents);

/// Throws Error{Experiment} that names a plugin with which the run was begun and which is not
/// loaded. It is never loaded because a folder names it.
void check_plugins(const RunFolder& folder);

/// Remarks on changes since run.json after which the rest of the run may differ in bits from an
/// uninterrupted run: another processor, instruction set, plugin or version.
std::vector<std::string> changed_surroundings(const Value& run);

}  // namespace pipewright
