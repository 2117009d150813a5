// SPDX-License-Identifier: Apache-2.0
/// How much memory the reading of a YAML document may take.
#pragma once

#include "core/config/value.h"

namespace pipewright::fuzz {

/// A node takes some hundred bytes here and in yaml-cpp, and a target has several documents at a
/// time. Aliases copy up to 100,000 nodes, however short the document is.
inline std::size_t document_memory(std::string_view bytes) {
  constexpr std::size_t kCopies = 100'000 * sizeof(Value), kAtATime = 8;
  const bool aliases = bytes.find('*') != std::string_view::npos;
  return (1 << 20) + 8192 * bytes.size() + (aliases ? kAtATime * kCopies : 0);
}

}  // namespace pipewright::fuzz
