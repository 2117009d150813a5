// SPDX-License-Identifier: Apache-2.0
#include "core/measuring/measured_format.h"

#include <optional>

#include "core/base/text.h"
#include "core/nn/memory_format.h"

namespace pipewright {
namespace {

constexpr const char* kOption = "pipeline.memory_format";

/// The recorded format of a run to be resumed. A run that recorded none had contiguous tensors.
std::optional<bool> recorded_format(const std::filesystem::path& file) {
  if (file.empty() || !std::filesystem::exists(file)) return {};
  const Value run = load_yaml(file);
  const Value* const format = run.find_path(kOption);
  return format != nullptr && format->text == memory_format_name(true);
}

/// Seconds of a micro-batch's passes through all layers.
double seconds_of(const Profile& profile) {
  double seconds = 0;
  for (const LayerCost& layer : profile.layers) seconds += layer.forward + layer.backward;
  return seconds;
}

bool channels_last_is_faster(Experiment& e, const LayoutRequest& request) {
  const auto measured = [&](bool channels_last) {
    e.pipeline.channels_last = channels_last;
    return seconds_of(shared_profile(e, request, kOption));
  };
  const double contiguous = measured(false), channels_last = measured(true);
  const bool faster = channels_last < contiguous;
  if (request.tell)
    request.tell(concat(kOption, ": auto gives ", memory_format_name(faster),
                        ": a micro-batch takes ", number_text(1e3 * channels_last),
                        " ms in channels_last and ", number_text(1e3 * contiguous),
                        " ms in contiguous"));
  return faster;
}

}  // namespace

void settle_memory_format(Experiment& e, const LayoutRequest& request, Team& team) {
  if (!e.pipeline.measures_format) return;
  double channels_last = 0;
  if (team.first() && has_convolutions(e.layers)) {
    const std::optional<bool> recorded = recorded_format(request.recorded);
    channels_last = recorded ? *recorded : channels_last_is_faster(e, request);
  }
  team.sum({&channels_last, 1});
  e.pipeline.channels_last = channels_last == 1;
  e.pipeline.measures_format = false;
  *e.resolved.find("pipeline")->find("memory_format") =
      Value::of(memory_format_name(e.pipeline.channels_last));
}

std::string memory_format_remark(const Experiment& e) {
  const bool wanted = e.resolved.find_path(kOption)->text == memory_format_name(true);
  if (!wanted || e.pipeline.channels_last) return {};
  return concat(kOption,
                " is channels_last, which changes nothing, because the model has no "
                "convolutions");
}

}  // namespace pipewright
