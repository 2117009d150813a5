// SPDX-License-Identifier: Apache-2.0
#include "core/schedule/other_names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <vector>

#include "core/base/text.h"

namespace pipewright {
namespace {

constexpr std::string_view kClass = "Schedule";  // before it in the names of PyTorch's classes
constexpr std::string_view kAsCsv =
    "the scheme csv_schedule reads the table of actions that PyTorch writes of it";

constexpr std::array<OtherName, 13> kOtherNames{{
    {"PyTorch", "GPipe", "gpipe", ""},
    {"PyTorch", "1F1B", "one_f_one_b", ""},
    {"PyTorch", "Interleaved1F1B", "interleaved", ""},
    {"PyTorch", "ZBVZeroBubble", "zb_v", ""},
    {"PyTorch", "InterleavedZeroBubble", "", kAsCsv},
    {"PyTorch", "LoopedBFS", "", kAsCsv},
    {"PyTorch", "DualPipeV", "dualpipe_v", ""},
    {"DeepSpeed", "TrainSchedule", "one_f_one_b", ""},
    {"DeepSpeed", "DataParallelSchedule", "data_parallel", ""},
    {"DeepSpeed", "InferenceSchedule", "",
     "it does not train; evaluation runs forwards alone here"},
    {"Megatron-LM", "forward_backward_no_pipelining", "model_parallel", "with pipeline.stages: 1"},
    {"Megatron-LM", "forward_backward_pipelining_without_interleaving", "one_f_one_b", ""},
    {"Megatron-LM", "forward_backward_pipelining_with_interleaving", "interleaved", ""},
}};

bool same_letters(std::string_view a, std::string_view b) {
  const auto lower = [](unsigned char c) { return std::tolower(c); };
  return std::ranges::equal(a, b, {}, lower, lower);
}

}  // namespace

std::span<const OtherName> other_names() {
  return kOtherNames;
}

const OtherName* find_other_name(std::string_view name) {
  const auto* const found = std::ranges::find_if(kOtherNames, [&](const OtherName& each) {
    return same_letters(each.name, name) || same_letters(concat(kClass, each.name), name);
  });
  return found == kOtherNames.end() ? nullptr : found;
}

std::string explain_other_name(std::string_view name) {
  const OtherName* const found = find_other_name(name);
  if (found == nullptr) return {};
  const std::string of = concat("'", found->name, "' of ", found->project);
  if (found->scheme.empty()) return concat(of, " is no scheme here; ", found->remark);
  return concat(of, " is the scheme ", found->scheme, " here",
                found->remark.empty() ? "" : concat(", ", found->remark));
}

std::string other_names_of(std::string_view scheme) {
  std::vector<std::string> projects;
  std::map<std::string, std::vector<std::string>> names;
  for (const OtherName& each : kOtherNames) {
    if (each.scheme != scheme) continue;
    const std::string project(each.project);
    if (!names.contains(project)) projects.push_back(project);
    names[project].emplace_back(each.name);
  }
  for (std::string& project : projects) project = concat(project, ": ", join(names[project], ", "));
  return join(projects, "; ");
}

}  // namespace pipewright
