/// How `extends`, profiles, `--set` and sweeps change a document.
#pragma once

#include <string>
#include <vector>

#include "core/config/value.h"

namespace pipewright {

/// `over` wins. A mapping that gives `name` replaces the old one whole; otherwise keys merge;
/// sequences and scalars are replaced.
Value merged(Value base, const Value& over);

/// The same for whole documents, whose `name` is only a name: their keys always merge. Requires
/// mappings.
Value merged_keys(Value base, const Value& over);

/// Sets "pipeline.stages" (dotted keys are split) to `value` by the rule of merged(). Stepping
/// into something that is not a mapping is a problem; stepping into nothing makes a mapping.
/// Setting "model.name" changes the name only: a mapping `model: {name: …}` is what replaces. Below
/// "sweep.grid" and "sweep.zip" the rest of the key is one key.
void set_path(Value& document, const std::string& dotted, const Value& value, Problems& problems);

/// The file with its chain of `extends` merged (paths relative to the file that names them, a
/// cycle is an error), the profile (if not empty) and then the `--set key=value` texts applied.
/// Options of kind path are written relative to *their* file, so each scalar keeps its place.
/// `name`, when absent, is component_name_of() the stem. `extends` and `profiles` are removed;
/// `sweep` and `table` stay. A profile of a base file is applied before the one of the same name in
/// the file that extends it. Throws Error{Experiment}.
Value load_document(const std::filesystem::path& file, const std::string& profile,
                    const std::vector<std::string>& sets);
/// The same; faults that leave the rest readable go to `faults` (see parse_yaml).
Value load_document(const std::filesystem::path& file, const std::string& profile,
                    const std::vector<std::string>& sets, Problems& faults);

/// One run of a sweep: a document without `sweep` and `table`, its label and what varies.
struct SweepPoint {
  std::string
      label;  ///< the point's `label`, else component_name_of() its values; "run" without any
  std::vector<std::pair<std::string, Value>> varied;  ///< dotted key → value (label included)
  Value document;
  std::string folder() const;  ///< "<label, made a file name>-<16 hex digits of the digest>"
};

/// The runs of `document.sweep`: points × zip × grid, in that order with the last grid key
/// fastest; one run without a sweep. Equal runs, unequal `zip` lengths and unknown parts of
/// `sweep` are problems. Throws Error{Experiment}.
std::vector<SweepPoint> expand_sweep(const Value& document);

}  // namespace pipewright
