// SPDX-License-Identifier: Apache-2.0
// Manifests of checkpoints. One that is taken, committed to another folder, is found there with the
// same content. The checksum that each of them bears is made right after most changes.
#include "core/training/checkpoint_manifest.h"

#include <string>

#include "core/config/json.h"
#include "tests/fuzz/scratch.h"
#include "tests/fuzz/target.h"

namespace pipewright::fuzz {
namespace {

constexpr std::string_view kChecksum = "\"checksum\":\"";
constexpr std::size_t kDigits = 16;

std::string text_of(const CheckpointManifest& manifest) {
  std::string text =
      concat(manifest.minibatches, ' ', manifest.epochs, ' ', manifest.identity, ' ',
             to_json(manifest.layout), ' ', join(manifest.slots, ","), ' ', manifest.steps.name,
             ' ', manifest.steps.bytes, ' ', manifest.steps.checksum);
  for (const CheckpointFile& file : manifest.files) text += ' ' + to_json(file.value());
  return text;
}

std::string read(std::string_view bytes) {
  static const ScratchFolder found, committed;
  found.write("manifest.json", bytes);
  const std::optional<CheckpointManifest> manifest = read_manifest(found.path());
  require(manifest.has_value(), "the manifest that is there was not found");
  require(manifest->minibatches >= 0, "fewer than no mini-batches");
  require(manifest->epochs >= 0, "fewer than no epochs");
  for (const CheckpointFile& file : manifest->files)
    require(file.bytes >= 0 && file.replica >= 0 && file.name.find('/') == std::string::npos,
            "a file lies elsewhere, or has numbers below zero: " + file.name);
  committed.clear();
  commit_manifest(committed.path(), *manifest);
  const std::string text = text_of(*manifest);
  const std::string again =
      text_of(reread([&] { return read_manifest(committed.path()).value(); }));
  require(again == text, concat("committed as ", again, ", it was ", text));
  return text;
}

void mend(std::string& bytes) {
  const std::size_t at = bytes.rfind(kChecksum);
  if (at == std::string::npos || at + kChecksum.size() + kDigits > bytes.size()) return;
  try {
    Value value = parse_json(bytes, "manifest.json");
    std::erase_if(value.fields, [](const auto& field) { return field.first == "checksum"; });
    bytes.replace(at + kChecksum.size(), kDigits, digest(value));
  } catch (const Error&) {  // no document has a digest
  }
}

std::size_t most_memory(std::string_view bytes) {
  return (1 << 20) + 8192 * bytes.size();
}

}  // namespace

const Target kTarget{.read = read, .most_memory = most_memory, .mend = mend, .rounds = 2500};

}  // namespace pipewright::fuzz
