// SPDX-License-Identifier: Apache-2.0
/// The message of an error, for tests in which messages are part of the specification.
#pragma once

#include <string>

#include "core/base/error.h"

namespace pipewright {

/// The text of the Error{Experiment} that `call` throws; "no error" or "another kind" otherwise.
template <class Call>
std::string error_text(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.kind() == ErrorKind::Experiment ? error.what() : "another kind";
  }
  return "no error";
}

}  // namespace pipewright
