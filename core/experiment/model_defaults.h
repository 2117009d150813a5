// SPDX-License-Identifier: Apache-2.0
/// Options of models that follow from the data set where the experiment leaves them out: classes,
/// channels, size, input, vocabulary, tokens, and the first and last of widths.
#pragma once

#include "core/config/value.h"

namespace pipewright {

/// Writes into the section `model` of a document what it leaves out and the data set says
/// (Dataset::form), for the options that this model has and within their ranges. Wrong options are
/// left to the reader of the document.
void complete_model(Value& document);

}  // namespace pipewright
