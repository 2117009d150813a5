// SPDX-License-Identifier: Apache-2.0
/// How `extends`, profiles, `--set` and sweeps change a document.
#pragma once

#include <string>
#include <vector>

#include "core/config/value.h"

namespace pipewright {

/// Merges two values, of which `over` wins. If `over` is a mapping that gives `name`, it replaces
/// `base` as a whole; other mappings merge key by key; sequences and scalars are replaced.
Value merged(Value base, const Value& over);

/// As merged(), but for whole documents, in which `name` is only the name of the run: their keys
/// always merge. Requires mappings.
Value merged_keys(Value base, const Value& over);

/// Sets a dotted key such as "pipeline.stages" to `value` by the rule of merged(). Elements of a
/// list are counted from 0, as in "optimizer.groups.0.lr". A step into another value is a problem;
/// a step into a missing or empty value makes a mapping. Setting "model.name" changes the name
/// only; set "model" to `{name: …}` to replace the whole section. Below "sweep.grid" and
/// "sweep.zip" the rest of the dotted key is one key.
void set_path(Value& document, const std::string& dotted, const Value& value, Problems& problems);

/// Loads an experiment: merges the file with its chain of `extends` (paths relative to the file
/// that names them, a cycle is an error), then applies the profile (if not empty), then the `--set
/// key=value` texts. A relative path in an option is relative to the file that *it* is written in,
/// so each scalar keeps its place. If `name` is absent, it is component_name_of() the stem of the
/// file name. `extends` and `profiles` are removed; `sweep` and `table` stay. A profile of a base
/// file is applied before the one of the same name in the file that extends it. Throws
/// Error{Experiment}, and Error{Data} if a file cannot be read.
Value load_document(const std::filesystem::path& file, const std::string& profile,
                    const std::vector<std::string>& sets);
/// As above, but faults after which the rest can still be read go to `faults` (see parse_yaml).
Value load_document(const std::filesystem::path& file, const std::string& profile,
                    const std::vector<std::string>& sets, Problems& faults);

/// An option of a file that another one extends, in a section that the latter gives anew with the
/// same name, or with the name that the former left out: so it no longer holds.
struct DroppedOption {
  std::string key;  ///< dotted
  Value value;      ///< with its place
  Place by;         ///< of the section that replaces it
};

/// What an experiment is composed of, besides the document that comes out.
struct Composition {
  std::vector<std::string> profiles;   ///< names of those of the file and of all that it extends
  std::vector<DroppedOption> dropped;  ///< and not given again
};

/// Throws as load_document().
Composition composition_of(const std::filesystem::path& file);

/// One run of a sweep: what a training of the document may depend on (see what_may_vary()), its
/// label, and the keys that vary.
struct SweepPoint {
  std::string label;  ///< its `label`, else made from its values, else "run"
  std::vector<std::pair<std::string, Value>> varied;  ///< dotted key → value (label included)
  Value document;
  bool labelled = false;       ///< whether `label` is one of its own
  std::string folder() const;  ///< "<label as a file name>-<16 hex digits of the digest>"
};

/// Makes the runs of `document.sweep`: points × zip × grid, in that order, of which the last key of
/// the grid varies fastest; one run if there is no sweep. Throws Error{Experiment} for equal runs,
/// unequal lengths in `zip` and unknown parts of `sweep`.
std::vector<SweepPoint> expand_sweep(const Value& document);
/// As expand_sweep(), for a command that takes these runs only, and not the base of the sweep. Also
/// throws Error{Experiment} for a value that every run replaces although it was given after the
/// sweep: by `--set`, or by the file that extends the one with the sweep.
std::vector<SweepPoint> expand_sweep_alone(const Value& document);

}  // namespace pipewright
