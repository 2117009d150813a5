// SPDX-License-Identifier: Apache-2.0
/// Reads an experiment file: every section, with the registered parts that they name.
#pragma once

#include "core/config/options.h"
#include "core/experiment/experiment.h"
#include "core/experiment/model_defaults.h"
#include "core/experiment/sections.h"

namespace pipewright {

/// Reads a document as load_document() returns it, and ignores its keys that are no options of a
/// run (experiment_keys.h). Throws Error{Experiment} with all problems, one per line, and `faults`,
/// found when the document was read. Of experiments that share `forms`, those with the same data
/// ask it once what its samples are.
Experiment read_experiment(const Value& document, const Problems& faults = {});
Experiment read_experiment(const Value& document, const Problems& faults, KnownForms& forms);

/// Reads the section `dataset`. The data set is not open; an experiment holds none.
std::unique_ptr<Dataset> read_dataset(Options& root);

/// Reads all sections, each checked by itself. Reports problems to the options' list, and leaves
/// defaults in the place of wrong values.
void read_sections(Options& root, Experiment& e, BalanceOption& balance);

}  // namespace pipewright
