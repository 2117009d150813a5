// SPDX-License-Identifier: Apache-2.0
// Profiles of layers. What is taken, written again, is read as an equal profile.
#include "core/cost/profile.h"

#include "tests/fuzz/document_memory.h"
#include "tests/fuzz/target.h"

namespace pipewright::fuzz {
namespace {

std::string read(std::string_view bytes) {
  const Profile profile = read_profile(parse_yaml(bytes, "profile.yaml"));
  const std::string text = to_yaml(profile_value(profile));
  require(reread([&] { return read_profile(parse_yaml(text, "written.yaml")); }) == profile,
          "what is written is another profile: " + text);
  return text;
}

}  // namespace

const Target kTarget{.read = read,
                     .refusals = {ErrorKind::Experiment},
                     .most_memory = document_memory,
                     .rounds = 3500};

}  // namespace pipewright::fuzz
