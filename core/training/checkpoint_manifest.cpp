// SPDX-License-Identifier: Apache-2.0
#include "core/training/checkpoint_manifest.h"

#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <fstream>
#include <limits>

#include "core/base/error_at.h"
#include "core/config/json.h"
#include "core/records/checkpoint_files.h"
#include "core/system/file.h"

namespace pipewright {
namespace {

namespace fs = std::filesystem;

constexpr const char* kManifest = "manifest.json";
constexpr const char* kPrevious = "manifest.previous.json";
constexpr std::uint64_t kLargestManifest = 1 << 22;  // bytes
constexpr const char* kChecksum = "checksum";
constexpr const char* kLossScale = "loss_scale";

std::string checksum_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::vector<char> block(1 << 20);
  uLong sum = ::crc32(0, nullptr, 0);
  while (in) {
    in.read(block.data(), static_cast<std::streamsize>(block.size()));
    sum =
        ::crc32(sum, reinterpret_cast<const Bytef*>(block.data()), static_cast<uInt>(in.gcount()));
  }
  if (!in.eof()) throw data_error(path, "cannot read");
  char text[16];
  std::snprintf(text, sizeof text, "%08lx", sum);
  return text;
}

std::int64_t size_of(const fs::path& path) {
  std::error_code error;
  const auto bytes = fs::file_size(path, error);
  if (error) throw data_error(path, "cannot open: ", error.message());
  return static_cast<std::int64_t>(bytes);
}

/// A field of that kind; an integer is from 0 to `most`. Throws Error{Data} at `where`.
const Value& field(const Value& mapping, const std::string& key, Value::Kind kind,
                   const std::string& where,
                   std::int64_t most = std::numeric_limits<std::int64_t>::max()) {
  const Value* const value = mapping.find(key);
  const bool fits =
      value != nullptr && value->is(kind) &&
      (kind != Value::Kind::Integer || (value->integer >= 0 && value->integer <= most));
  if (!fits)
    throw data_error(where, "is no manifest of a checkpoint: '", key, "' is ",
                     value == nullptr ? "missing" : value->described());
  return *value;
}

int int_field(const Value& mapping, const std::string& key, const std::string& where) {
  return static_cast<int>(
      field(mapping, key, Value::Kind::Integer, where, std::numeric_limits<int>::max()).integer);
}

/// The loss scale of a file, if it has one.
std::optional<SavedLossScale> loss_scale_in(const Value& file, const std::string& where) {
  if (file.find(kLossScale) == nullptr) return {};
  std::vector<std::int64_t> numbers;
  for (const Value& each : field(file, kLossScale, Value::Kind::Sequence, where).items)
    if (each.is(Value::Kind::Integer) && each.integer >= 0) numbers.push_back(each.integer);
  if (numbers.size() != 3 || !std::has_single_bit(static_cast<std::uint64_t>(numbers[0])) ||
      numbers[0] > SavedLossScale::kLargest)
    throw data_error(where, "is no manifest of a checkpoint: '", kLossScale,
                     "' is not a power of two and two counts");
  return SavedLossScale{.scale = numbers[0], .since = numbers[1], .skipped = numbers[2]};
}

RowLogPart read_log(const Value& value, const std::string& where) {
  using Kind = Value::Kind;
  return {.name = fs::path(field(value, "name", Kind::Text, where).text).filename().string(),
          .bytes = field(value, "bytes", Kind::Integer, where).integer,
          .checksum = field(value, kChecksum, Kind::Text, where).text};
}

Value value_of(const RowLogPart& log) {
  Value value = Value::mapping();
  value.at_or_add("name") = Value::of(log.name);
  value.at_or_add("bytes") = Value::of(log.bytes);
  value.at_or_add(kChecksum) = Value::of(log.checksum);
  return value;
}

CheckpointManifest manifest_in(const Value& value, const std::string& where) {
  using Kind = Value::Kind;
  CheckpointManifest manifest{
      .minibatches = field(value, "minibatches", Kind::Integer, where).integer,
      .epochs = int_field(value, "epochs", where),
      .identity = field(value, "identity", Kind::Text, where).text,
      .layout = field(value, "layout", Kind::Mapping, where)};
  for (const Value& slot : field(value, "slots", Kind::Sequence, where).items)
    manifest.slots.push_back(slot.text);
  manifest.steps = read_log(field(value, "steps", Kind::Mapping, where), where);
  if (value.find("train_steps") != nullptr)
    manifest.train_steps = field(value, "train_steps", Kind::Integer, where).integer;
  if (const Value* const probes = value.find("probes")) manifest.probes = read_log(*probes, where);
  manifest.files = read_files(field(value, "files", Kind::Sequence, where), where);
  return manifest;
}

Value value_of(const CheckpointManifest& manifest) {
  Value value = Value::mapping();
  value.at_or_add("minibatches") = Value::of(manifest.minibatches);
  value.at_or_add("epochs") = Value::of(manifest.epochs);
  if (manifest.train_steps > 0) value.at_or_add("train_steps") = Value::of(manifest.train_steps);
  value.at_or_add("identity") = Value::of(manifest.identity);
  value.at_or_add("layout") = manifest.layout;
  Value& slots = value.at_or_add("slots") = Value::sequence();
  for (const std::string& slot : manifest.slots) slots.items.push_back(Value::of(slot));
  value.at_or_add("steps") = value_of(manifest.steps);
  if (!manifest.probes.name.empty()) value.at_or_add("probes") = value_of(manifest.probes);
  Value& files = value.at_or_add("files") = Value::sequence();
  for (const CheckpointFile& file : manifest.files) files.items.push_back(file.value());
  return value;
}

/// Refuses a symbolic link: it may lead to another run's checkpoints.
void refuse_a_link(const fs::path& checkpoints) {
  std::error_code ignored;
  if (fs::is_symlink(fs::symlink_status(checkpoints, ignored)))
    throw data_error(checkpoints,
                     "is a symbolic link; checkpoints are kept in a folder of the run's own: "
                     "remove the link, or give --out a path behind it");
}

/// Reads one manifest file. Throws Error{Data}.
FoundManifest read_one(const fs::path& path) {
  Value value;
  const std::string text = read_file(path, kLargestManifest);
  try {
    value = parse_json(text, path.string());
  } catch (const Error&) {
    throw data_error(path, "is damaged: it is not JSON");
  }
  const std::string checksum = field(value, kChecksum, Value::Kind::Text, path.string()).text;
  std::erase_if(value.fields, [](const auto& each) { return each.first == kChecksum; });
  if (digest(value) != checksum)
    throw data_error(path, "is damaged: its checksum is not that of its content");
  return {.manifest = manifest_in(value, path.string()), .damage = {}, .digest = checksum};
}

FoundManifest found(const fs::path& path) {
  try {
    return read_one(path);
  } catch (const Error& error) {
    return {.manifest = {}, .damage = error, .digest = error.message()};
  }
}

/// Removes files with our names that no manifest needs. Errors are ignored: what remains does no
/// harm and is removed with the next checkpoint.
void remove_all_but(const std::vector<const CheckpointManifest*>& manifests,
                    const fs::path& checkpoints) {
  std::error_code ignored;
  const auto is_needed = [&](const std::string& name) {
    return std::ranges::any_of(manifests, [&](const CheckpointManifest* manifest) {
      return manifest->folder() == name || manifest->steps.name == name ||
             manifest->probes.name == name;
    });
  };
  std::vector<std::string> names;
  try {
    names = names_in(checkpoints);
  } catch (const Error&) {  // the next checkpoint tries again
  }
  for (const std::string& name : names) {
    if (is_checkpoint_folder(name) && !is_needed(name)) remove_checkpoint(checkpoints / name);
    const bool unfinished = name.ends_with(".part");
    const bool log = name.starts_with("steps-") || name.starts_with("probes-");
    if (is_checkpoint_file(name) && (unfinished || (log && !is_needed(name))))
      fs::remove(checkpoints / name, ignored);
  }
  for (const CheckpointManifest* manifest : manifests) {
    std::vector<std::string> kept;
    for (const CheckpointFile& file : manifest->files) kept.push_back(file.name);
    remove_checkpoint(checkpoints / manifest->folder(), kept);
  }
}

}  // namespace

Value CheckpointFile::value() const {
  Value value = Value::mapping();
  value.at_or_add("name") = Value::of(name);
  value.at_or_add("bytes") = Value::of(bytes);
  value.at_or_add(kChecksum) = Value::of(checksum);
  value.at_or_add("replica") = Value::of(replica);
  value.at_or_add("steps") = Value::of(steps);
  if (loss_scale) {
    Value& numbers = value.at_or_add(kLossScale) = Value::sequence();
    for (const std::int64_t number : {loss_scale->scale, loss_scale->since, loss_scale->skipped})
      numbers.items.push_back(Value::of(number));
  }
  return value;
}

std::string CheckpointManifest::folder() const {
  return checkpoint_folder_name(minibatches);
}

CheckpointFile described_file(const fs::path& path) {
  return {.name = path.filename().string(), .bytes = size_of(path), .checksum = checksum_of(path)};
}

void check_file(const fs::path& path, const CheckpointFile& file) {
  if (const std::int64_t bytes = size_of(path); bytes != file.bytes)
    throw data_error(path, "has ", bytes, " bytes; the checkpoint was written with ", file.bytes);
  if (checksum_of(path) != file.checksum)
    throw data_error(path, "is damaged: its checksum is not the one it was written with");
}

std::vector<CheckpointFile> read_files(const Value& list, const std::string& where) {
  using Kind = Value::Kind;
  std::vector<CheckpointFile> files;
  for (const Value& value : list.items)
    files.push_back(
        {.name = fs::path(field(value, "name", Kind::Text, where).text).filename().string(),
         .bytes = field(value, "bytes", Kind::Integer, where).integer,
         .checksum = field(value, kChecksum, Kind::Text, where).text,
         .replica = int_field(value, "replica", where),
         .steps = field(value, "steps", Kind::Integer, where).integer,
         .loss_scale = loss_scale_in(value, where)});
  return files;
}

std::vector<FoundManifest> find_manifests(const fs::path& checkpoints) {
  std::vector<FoundManifest> all;
  const fs::path newest = checkpoints / kManifest, previous = checkpoints / kPrevious;
  std::error_code ignored;
  if (fs::exists(fs::symlink_status(newest, ignored))) {
    all.push_back(found(newest));
  } else {
    const std::vector<std::string> names = names_in(checkpoints);
    const auto left = std::ranges::find_if(names, is_checkpoint_folder);
    if (left == names.end()) return {};
    const std::string what = concat("is missing, but there is '", *left, "'");
    all.push_back({.manifest = {}, .damage = data_error(newest, what), .digest = what});
  }
  if (fs::exists(fs::symlink_status(previous, ignored))) all.push_back(found(previous));
  return all;
}

std::optional<CheckpointManifest> read_manifest(const fs::path& checkpoints) {
  const std::vector<FoundManifest> all = find_manifests(checkpoints);
  if (all.empty()) return std::nullopt;
  if (all.front().damage) throw *all.front().damage;
  return all.front().manifest;
}

void commit_manifest(const fs::path& checkpoints, const CheckpointManifest& manifest) {
  refuse_a_link(checkpoints);
  const auto write = [&](const char* name, const CheckpointManifest& content, Syncs syncs = {}) {
    Value value = value_of(content);
    value.at_or_add(kChecksum) = Value::of(digest(value));  // digest of all other fields
    write_file(checkpoints / name, to_json(value) + "\n", syncs);
  };
  const std::vector<FoundManifest> before = find_manifests(checkpoints);
  const auto previous = std::ranges::find_if(before, [&](const FoundManifest& each) {
    return each.manifest && each.manifest->minibatches > 0 &&
           each.manifest->minibatches < manifest.minibatches;
  });
  // This order ensures that two checkpoints are named at every moment.
  write(kManifest, manifest);
  std::error_code ignored;
  if (previous == before.end())
    fs::remove(checkpoints / kPrevious, ignored);
  else if (previous == before.begin())
    write(kPrevious, *previous->manifest, {.name = false});
  std::vector<const CheckpointManifest*> kept{&manifest};
  if (previous != before.end()) kept.push_back(&*previous->manifest);
  remove_all_but(kept, checkpoints);
}

}  // namespace pipewright
