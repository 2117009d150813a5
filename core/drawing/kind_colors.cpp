// SPDX-License-Identifier: Apache-2.0
#include "core/drawing/kind_colors.h"

#include <algorithm>
#include <array>

#include "core/drawing/render_page.h"

namespace pipewright {
namespace {

constexpr std::size_t kShades = 5;
constexpr const char* kDark = palette::kInk;
constexpr const char* kLight = "#ffffff";
using Family = std::array<Shade, kShades>;

constexpr Family kBlue = {{{"#cfe1f5", kDark},
                           {"#a3c7ec", kDark},
                           {"#74a8df", kDark},
                           {"#4a87cc", kLight},
                           {"#2b65a9", kLight}}};
constexpr Family kGreen = {{{"#cfecd3", kDark},
                            {"#a4d9ad", kDark},
                            {"#74c083", kDark},
                            {"#45a05b", kLight},
                            {"#287d41", kLight}}};
constexpr Family kLightGreen = {{{"#f0f6d2", kDark},
                                 {"#e4efb5", kDark},
                                 {"#d6e696", kDark},
                                 {"#c6da77", kDark},
                                 {"#b4cb5a", kDark}}};
constexpr Family kTeal = {{{"#c9ecec", kDark},
                           {"#9bd8d9", kDark},
                           {"#67bfc1", kDark},
                           {"#3a9b9e", kLight},
                           {"#1f7679", kLight}}};
constexpr Family kViolet = {{{"#e6dcf5", kDark},
                             {"#cfbcec", kDark},
                             {"#b497df", kDark},
                             {"#9571cd", kLight},
                             {"#764db2", kLight}}};
constexpr Family kCyan = {{{"#d0eef0", kDark},
                           {"#a6dde1", kDark},
                           {"#74c6cc", kDark},
                           {"#45a4ac", kLight},
                           {"#277e86", kLight}}};
constexpr Family one(const char* fill, const char* ink) {
  Family family{};
  family.fill({fill, ink});
  return family;
}
constexpr Family kOrange = one(palette::kUpdate, kLight);
constexpr Family kGrey = one("#98a2b1", kDark);
constexpr Family kBrown = one("#9c6b45", kLight);
constexpr Family kRose = one("#c9759b", kLight);

struct KindColors {
  ActionKind kind;
  const Family* shades;
  int terminal;
};
constexpr std::array<KindColors, kActionKinds.size()> kColors = {{
    {ActionKind::Forward, &kBlue, 34},
    {ActionKind::Head, &kViolet, 35},
    {ActionKind::Recompute, &kCyan, 94},
    {ActionKind::Backward, &kGreen, 32},
    {ActionKind::BackwardInput, &kLightGreen, 92},
    {ActionKind::BackwardWeight, &kTeal, 36},
    {ActionKind::Offload, &kBrown, 95},
    {ActionKind::Fetch, &kRose, 96},
    {ActionKind::Reduce, &kGrey, kQuietTerminalColor},
    {ActionKind::Update, &kOrange, 33},
}};
static_assert(std::ranges::all_of(kColors,
                                  [](const KindColors& row) {
                                    return &row == &kColors[static_cast<std::size_t>(row.kind)] &&
                                           row.shades != nullptr;
                                  }),
              "a row per kind, in the order of the enumeration");

}  // namespace

Shade shade_of(ActionKind kind, int minibatch) {
  const Family& shades = *kColors[static_cast<std::size_t>(kind)].shades;
  return shades[static_cast<std::size_t>(std::max(minibatch, 0) + 1) % kShades];
}

int terminal_color_of(ActionKind kind) {
  return kColors[static_cast<std::size_t>(kind)].terminal;
}

}  // namespace pipewright
