// SPDX-License-Identifier: Apache-2.0
#include "core/exports/curve_tags.h"

#include "core/base/printable.h"
#include "core/base/text.h"

namespace pipewright {
namespace {

constexpr std::string_view kPerStep = "loss_per_step/", kProbe = "probe.",
                           kEvaluated = "_per_step/test", kRate = "lr_per_step";

}  // namespace

std::string epoch_tag(std::string_view column) {
  for (const std::string_view data : {"train", "test"})
    if (column.starts_with(concat(data, "_")))
      return printable(concat(column.substr(data.size() + 1), "/", data));
  return printable(column);  // a tag is UTF-8, or readers refuse its file
}

std::string step_tag(std::string_view column) {
  constexpr std::string_view kAuxiliary = "loss_";
  if (column == "lr") return std::string(kRate);
  if (!column.starts_with(kAuxiliary)) return concat(kPerStep, "train");
  return printable(concat(kPerStep, "stage_", column.substr(kAuxiliary.size())));
}

std::string evaluation_tag(std::string_view column) {
  return printable(concat(column.substr(std::string_view("test_").size()), kEvaluated));
}

std::string probe_tag(std::string_view probe, std::string_view quantity, std::optional<int> stage) {
  return printable(concat(kProbe, probe, "/", quantity, stage ? concat("/stage_", *stage) : ""));
}

bool is_per_minibatch(std::string_view tag) {
  return tag.starts_with(kPerStep) || tag.starts_with(kProbe) || tag.ends_with(kEvaluated) ||
         tag == kRate;
}

}  // namespace pipewright
