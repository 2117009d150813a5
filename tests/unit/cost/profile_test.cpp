// SPDX-License-Identifier: Apache-2.0
// Profiles as files: what is written reads back, and what is wrong is told with its place.
#include "core/cost/profile.h"

#include <gtest/gtest.h>

#include "core/drawing/render_profile.h"

namespace pipewright::test {
namespace {

Profile small_profile() {
  Profile profile{.model = "mlp",
                  .digest = "0123456789abcdef",
                  .device = "cpu",
                  .device_model = "an example",
                  .machine = "elsewhere",
                  .measured = "2026-11-24",
                  .precision = "float64",
                  .samples = 8,
                  .threads = 2,
                  .timed = true,
                  .input_bytes = 96};
  profile.layers = {{.name = "0",
                     .forward = 1.25e-5,
                     .backward = 1.0 / 3,
                     .backward_input = 0.1,
                     .backward_weight = 0.2,
                     .update = 1e-9,
                     .new_version = 2e-10,
                     .prediction = 3e-10,
                     .fused_prediction = 4e-10,
                     .flops = 3e12,
                     .kernels = 11,
                     .update_kernels = 12,
                     .output_bytes = 1,
                     .activation_bytes = 2,
                     .peak_bytes = 3,
                     .peak_adding_bytes = 6,
                     .parameters = 4,
                     .parameter_bytes = 5,
                     .buffer_bytes = 7},
                    {.name = "1: x"}};
  return profile;
}

std::string problems(const Profile& profile, const std::string& from, const std::string& to) {
  std::string text = to_yaml(profile_value(profile));
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  try {
    read_profile(parse_yaml(text, "p.yaml"));
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Experiment);
    return error.what();
  }
  return "nothing is wrong";
}

TEST(Profile, ReadsBackAsItWasWritten) {
  const Profile profile = small_profile();
  EXPECT_EQ(read_profile(parse_yaml(to_yaml(profile_value(profile)), "p.yaml")), profile);
}

TEST(Profile, TellsWhatIsWrongWithItsPlace) {
  const Profile profile = small_profile();
  EXPECT_EQ(problems(profile, "samples: 8", "samples: eight").substr(0, 15), "p.yaml:6:10: sa");
  EXPECT_NE(problems(profile, "backward_input: 0.1", "backward_input: -1").find("backward_input"),
            std::string::npos);
  EXPECT_NE(problems(profile, "pipewright_profile: 1", "pipewright_profile: 2")
                .find("is 2, a format that this Pipewright does not read; expected 1"),
            std::string::npos);
  EXPECT_NE(problems(profile, "peak_bytes", "pick_bytes").find("did you mean 'peak_bytes'?"),
            std::string::npos);
  EXPECT_NE(
      problems(profile, "\"1: x\"", "\"0\"").find("layers[1].name is '0', as of a layer before it"),
      std::string::npos);
}

TEST(Profile, IsDrawnAsATableOfItsLayers) {
  Profile profile = small_profile();
  profile.layers[1].forward = 2.0 / 3 - 1.25e-5;
  EXPECT_EQ(render_profile(profile),
            R"(mlp on cpu, 8 samples in float64, 2 threads

 layer    forward   backward  output  activations  parameters   share
 0        12.5 µs  333.33 ms     1 B          2 B           4  33.3 %  ███████
 1: x   666.65 ms     0.0 µs     0 B          0 B           0  66.7 %  █████████████
 total  666.67 ms  333.33 ms                  2 B           4
)");
}

}  // namespace
}  // namespace pipewright::test
