// SPDX-License-Identifier: Apache-2.0
/// Errors at a file or another place, whose messages are several parts, one after another.
#pragma once

#include "core/base/error.h"

namespace pipewright {

namespace detail {
template <class Where>
std::string where_text(const Where& where) {
  if constexpr (requires { where.string(); })
    return where.string();  // of a path
  else
    return std::string(where);
}
}  // namespace detail

/// An Error{Data}.
template <class Where, class... Parts>
Error data_error(const Where& where, const Parts&... parts) {
  return Error(ErrorKind::Data, concat(parts...), detail::where_text(where));
}

/// An Error{Experiment}.
template <class Where, class... Parts>
Error experiment_error(const Where& where, const Parts&... parts) {
  return Error(ErrorKind::Experiment, concat(parts...), detail::where_text(where));
}

}  // namespace pipewright
