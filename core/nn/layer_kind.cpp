// SPDX-License-Identifier: Apache-2.0
#include "core/nn/layer_kind.h"

#include "core/base/text.h"

namespace pipewright {

std::string SampleShape::text() const {
  const char* what = is_tokens()  ? "tokens"
                     : is_image() ? "an image"
                     : is_flat()  ? "features"
                                  : "vectors";
  std::string all;
  for (const std::int64_t size : sizes) all += concat(all.empty() ? "" : ", ", size);
  return concat(what, " [", all, "]");
}

}  // namespace pipewright
