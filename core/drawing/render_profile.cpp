// SPDX-License-Identifier: Apache-2.0
#include "core/drawing/render_profile.h"

#include <cmath>

#include "core/base/printed.h"
#include "core/base/text_table.h"
#include "core/base/wording.h"

namespace pipewright {
namespace {

constexpr double kBar = 20;  // characters of a bar of 100 %

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

std::string bytes_column(std::int64_t count) {
  return bytes_text(count);
}

/// The cells of a layer or of the sum. Output and share stay empty: a sum has none.
std::vector<std::string> cells(const Profile& profile, const LayerCost& cost) {
  const std::string parameters = count_text(static_cast<double>(cost.parameters));
  if (!profile.timed) return {cost.name, count_text(cost.flops), "", parameters, "", ""};
  return {cost.name,
          time_text(cost.forward),
          time_text(cost.backward),
          "",
          bytes_column(cost.activation_bytes),
          parameters,
          "",
          ""};
}

std::string bar(double share) {
  std::string text;
  for (long i = std::lround(share * kBar); i > 0; --i) text += "█";
  return text;
}

}  // namespace

std::string render_profile(const Profile& profile) {
  const bool timed = profile.timed;
  std::vector<std::string> titles{"layer", "operations", "output", "parameters", "share", ""};
  if (timed)
    titles = {"layer", "forward", "backward", "output", "activations", "parameters", "share", ""};
  const std::size_t output = timed ? 3 : 2, share = titles.size() - 2;
  TextTable table(std::move(titles), {0, share + 1});
  const LayerCost sum = total(profile);
  const auto weight = [&](const LayerCost& cost) {
    return timed ? cost.forward + cost.backward : cost.flops;
  };
  for (const LayerCost& cost : profile.layers) {
    std::vector<std::string> row = cells(profile, cost);
    const double part = weight(sum) > 0 ? weight(cost) / weight(sum) : 0;
    row[output] = bytes_column(cost.output_bytes);
    row[share] = printed("%.1f %%", 100 * part);
    row[share + 1] = bar(part);
    table.add(std::move(row));
  }
  table.add(cells(profile, sum));
  std::string head = concat(profile.model, " on ", profile.device, ", ",
                            counted(profile.samples, "sample"), " in ", profile.precision);
  if (timed) head += concat(", ", counted(profile.threads, "thread"));
  return head + "\n\n" + table.text();
}

}  // namespace pipewright
