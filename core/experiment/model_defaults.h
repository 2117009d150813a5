// SPDX-License-Identifier: Apache-2.0
/// Options of models that follow from the data set where the experiment leaves them out: classes,
/// channels, size, input, vocabulary, tokens, and the first and last of widths.
#pragma once

#include <map>
#include <string>

#include "core/base/mutex.h"
#include "core/config/value.h"
#include "core/nn/dataset.h"

namespace pipewright {

/// What data sets say of their samples. Each is asked once for many experiments, since some read
/// a whole file to answer. Several threads may ask at once.
class KnownForms {
 public:
  /// The form of the data set with these options, all given.
  SampleForm of(const Dataset& dataset, const Value& options, Task targets);

 private:
  Mutex mutex_;
  std::map<std::string, SampleForm> known_ PIPEWRIGHT_GUARDED_BY(mutex_);
};

/// Writes into the section `model` of a document what it leaves out and the data set says
/// (Dataset::form), for the options that this model has and within their ranges. Wrong options are
/// left to the reader of the document.
void complete_model(Value& document, KnownForms& forms);

}  // namespace pipewright
