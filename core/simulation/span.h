// SPDX-License-Identifier: Apache-2.0
/// When an action ran, in seconds since its execution or simulation began.
#pragma once

namespace pipewright {

/// An action begins when its worker is free and its input is there, so a wait lies between two
/// spans. Only a reduction begins, in a measured trace, when its own worker reaches it.
struct Span {
  double begin = 0;
  double end = 0;
  /// Seconds of a measured trace within the span: of codecs at its beginning, of codecs before it
  /// sends, and at its end, in which its worker could do nothing else because it sent.
  double decoding = 0, encoding = 0, sending = 0;

  bool operator==(const Span&) const = default;
};

}  // namespace pipewright
