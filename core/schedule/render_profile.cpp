#include "core/schedule/render_profile.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "core/base/text.h"

namespace pipewright {
namespace {

constexpr std::size_t kWidestName = 28, kBar = 20;

double time_of(const LayerCost& cost) {
  return cost.forward + cost.backward;
}

LayerCost total(const Profile& profile) {
  LayerCost sum{.name = "total"};
  for (const LayerCost& cost : profile.layers) {
    sum.forward += cost.forward;
    sum.backward += cost.backward;
    sum.flops += cost.flops;
    sum.activation_bytes += cost.activation_bytes;
    sum.parameters += cost.parameters;
  }
  return sum;
}

template <class... Parts>
std::string printed(const char* format, const Parts&... parts) {
  char text[256];
  const int length = std::snprintf(text, sizeof text, format, parts...);
  return {text, static_cast<std::size_t>(std::clamp(length, 0, 255))};
}

/// Right-aligned, counting characters.
std::string right(const std::string& text, std::size_t width) {
  const auto characters = static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
  return std::string(width - std::min(width, characters), ' ') + text;
}

std::string row(const Profile& profile, const LayerCost& cost, std::size_t width) {
  std::string name = cost.name.substr(0, width);
  name.resize(width, ' ');
  const bool sum = cost.name == "total" && cost.output_bytes == 0;
  const std::string output =
      sum ? std::string() : bytes_text(static_cast<double>(cost.output_bytes));
  const std::string parameters = count_text(static_cast<double>(cost.parameters));
  if (!profile.timed)
    return concat(' ', name, right(count_text(cost.flops), 13), right(output, 13),
                  right(parameters, 12));
  return concat(' ', name, right(time_text(cost.forward), 11), right(time_text(cost.backward), 11),
                right(output, 13),
                right(bytes_text(static_cast<double>(cost.activation_bytes)), 13),
                right(parameters, 12));
}

}  // namespace

std::string time_text(double seconds) {
  if (seconds < 1e-3) return printed("%.1f µs", seconds * 1e6);
  if (seconds < 1) return printed("%.2f ms", seconds * 1e3);
  return printed("%.2f s", seconds);
}

std::string render_profile(const Profile& profile) {
  std::size_t width = 5;
  for (const LayerCost& cost : profile.layers)
    width = std::clamp(cost.name.size(), width, kWidestName);
  std::string text =
      concat(profile.model, " on ", profile.device, ", ", profile.samples,
             profile.samples == 1 ? " sample" : " samples", " in ", profile.precision);
  if (profile.timed)
    text += concat(", ", profile.threads, profile.threads == 1 ? " thread" : " threads");
  std::string layer = "layer";
  layer.resize(width, ' ');
  text += concat("\n\n ", layer);
  if (profile.timed)
    text += right("forward", 11) + right("backward", 11) + right("output", 13) +
            right("activations", 13);
  else
    text += right("operations", 13) + right("output", 13);
  text += right("parameters", 12) + "  share\n";
  const LayerCost sum = total(profile);
  const auto weight = [&](const LayerCost& cost) {
    return profile.timed ? time_of(cost) : cost.flops;
  };
  for (const LayerCost& cost : profile.layers) {
    const double share = weight(sum) > 0 ? weight(cost) / weight(sum) : 0;
    text += row(profile, cost, width) + printed("  %4.1f %%", 100 * share);
    const auto bar = static_cast<std::size_t>(std::lround(share * static_cast<double>(kBar)));
    text += "  ";
    for (std::size_t i = 0; i < bar; ++i) text += "█";
    text += '\n';
  }
  return text + row(profile, sum, width) + '\n';
}

}  // namespace pipewright
