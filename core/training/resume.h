/// What is left to do in a folder that holds a run already, when it is to be taken up.
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
  Leave,    ///< it is done, and what is asked for
  Compare,  ///< the same if what lies at its paths, which have changed, has the same content
  GoOn,     ///< it is not done
  Prolong   ///< it is done, and more epochs are asked for
};

struct ResumptionChoice {
  Resumption what = Resumption::GoOn;
  std::string remark;  ///< how the run differs that is left alone; or ""
};

/// run.json. Throws Error{Data} if it cannot be read or is none.
Value read_run_json(const RunFolder& folder);

/// `run`: the folder's run.json. Throws Error{Experiment} naming the options that differ, if the
/// run is of another experiment, or done in another way.
ResumptionChoice resumption(const RunFolder& folder, const Value& run,
                            const Experiment& experiment);

/// Throws Error{Experiment} if the data or weights of the run had another content. `contents`:
/// those of now (contents.h).
void check_contents(const RunFolder& folder, const Value& run, const Value& contents);

/// Throws Error{Experiment} naming a plugin that the run was begun with and that is not loaded: a
/// folder loads no code by itself.
void check_plugins(const RunFolder& folder);

/// What may give the rest of the run other bits than an uninterrupted run has: a processor or
/// instructions, a plugin, a version that are not those of run.json.
std::vector<std::string> changed_surroundings(const Value& run);

}  // namespace pipewright
