// SPDX-License-Identifier: Apache-2.0
/// The hardware that an experiment is simulated on: a description in a file, and over it the
/// experiment's own section `hardware`, whose keys a sweep can vary like all others.
#pragma once

#include <filesystem>
#include <map>
#include <vector>

#include "core/base/mutex.h"
#include "core/config/options.h"
#include "core/schedule/schedule.h"
#include "core/simulation/hardware.h"

namespace pipewright {

/// The hardware laid_out() for a pipeline of that shape; replicas that share workers are one.
Hardware laid_out(const Hardware& hardware, const PipelineShape& shape);

/// Reads a description of hardware such as those in experiments/hardware. Throws Error{Experiment}
/// with all problems, and Error{Data} if there is no such file.
Hardware load_hardware(const std::filesystem::path& file);

/// Reads the hardware of documents as load_document() and expand_sweep() return them. Each file is
/// read once. Any thread may use it.
class HardwareSource {
 public:
  /// `instead`: a description to be taken in the place of `hardware.file`; empty: none.
  explicit HardwareSource(std::filesystem::path instead = {}) : instead_(std::move(instead)) {}

  /// Whether a file or the document's section describes hardware.
  bool describes(const Value& document) const;
  /// The hardware of a document, laid_out() for such a pipeline; ideal if nothing describes it.
  /// Throws Error{Experiment} with all problems, and Error{Data} if there is no such file.
  Hardware of(const Value& document, const PipelineShape& shape) PIPEWRIGHT_EXCLUDES(mutex_);

 private:
  Hardware read(const Value& document) PIPEWRIGHT_EXCLUDES(mutex_);
  Value description(const std::filesystem::path& file) PIPEWRIGHT_EXCLUDES(mutex_);

  std::filesystem::path instead_;
  Mutex mutex_;
  std::map<std::filesystem::path, Value> files_ PIPEWRIGHT_GUARDED_BY(mutex_);
};

/// Reads the hardware of every point of the document's sweep, or of a file without one, and what
/// `table.hardware` and `plot.hardware` name. Throws the problems of the first that has any.
void check_hardware(const Value& document);

/// The options of the section `hardware`, for `describe` and the JSON Schema.
std::vector<OptionInfo> hardware_section_options();

}  // namespace pipewright
