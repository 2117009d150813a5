// SPDX-License-Identifier: Apache-2.0
/// When an action ran, in seconds since its execution or simulation began.
#pragma once

namespace pipewright {

struct Span {
  double begin = 0;
  double end = 0;

  bool operator==(const Span&) const = default;
};

}  // namespace pipewright
