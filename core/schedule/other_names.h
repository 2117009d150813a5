// SPDX-License-Identifier: Apache-2.0
/// Names of schedules in other projects, for people who know them. torchtitan has PyTorch's.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace pipewright {

struct OtherName {
  std::string_view project;
  std::string_view name;    ///< a schedule, class or function there
  std::string_view scheme;  ///< of ours; "": there is none
  std::string_view remark;  ///< what differs, or what to do without one; "": nothing
};

std::span<const OtherName> other_names();

/// The entry of a name; null for one that nobody uses. Names are compared without regard to case,
/// and PyTorch's classes are known, too: Schedule1F1B.
const OtherName* find_other_name(std::string_view name);

/// "'1F1B' of PyTorch is the scheme one_f_one_b here"; "" for a name that nobody uses.
std::string explain_other_name(std::string_view name);

/// The other names of a scheme: "PyTorch: 1F1B; DeepSpeed: TrainSchedule"; "": none.
std::string other_names_of(std::string_view scheme);

}  // namespace pipewright
