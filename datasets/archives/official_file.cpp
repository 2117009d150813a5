// SPDX-License-Identifier: Apache-2.0
#include "datasets/archives/official_file.h"

#include <algorithm>

#include "core/base/error_at.h"
#include "core/fetch/sources.h"
#include "core/system/file.h"
#include "datasets/archives/gzip.h"

namespace pipewright {
namespace {

bool on_disk(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

bool is_file(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored);
}

std::filesystem::path gzipped(const std::filesystem::path& path) {
  return path.string() + ".gz";
}

[[noreturn]] void throw_missing(const std::filesystem::path& root, const OfficialFile& file,
                                const std::string& archive) {
  const std::string others =
      archive.empty() ? concat(file.name, ".gz") : concat(file.name, ".gz or ", archive);
  throw data_error(root / file.name, "no such file, nor ", others, " beside it. It is part of ",
                   file.origin, ". Set dataset.root to the folder that holds it",
                   fetch_advice(file.dataset));
}

void check_size(std::uint64_t size, const OfficialFile& file, bool packed,
                const std::filesystem::path& place) {
  const std::uint64_t record = file.record_in_bytes;
  const auto refuse = [&](const std::string& expected) {
    throw data_error(place, "has ", size, " bytes", std::string(packed ? " unpacked" : ""), ", ",
                     expected, ": it is truncated");
  };
  if (record == 0 && size != file.size_in_bytes)
    refuse(concat("the official file has ", file.size_in_bytes));
  if (record > 0 && (size == 0 || size % record != 0 || size > file.size_in_bytes))
    refuse(concat("which is no whole number of records of ", record,
                  " bytes (the official file has ", file.size_in_bytes / record, ")"));
}

}  // namespace

bool is_there(const std::filesystem::path& root, const OfficialFile& file) {
  return on_disk(root / file.name) || on_disk(gzipped(root / file.name));
}

std::string read_official(const std::filesystem::path& root, const OfficialFile& file) {
  const std::filesystem::path plain = root / file.name;
  if (!is_there(root, file)) throw_missing(root, file, "");
  const bool packed = !on_disk(plain);
  std::string content =
      packed ? read_gzip(gzipped(plain), file.size_in_bytes) : read_file(plain, file.size_in_bytes);
  check_size(content.size(), file, packed, packed ? gzipped(plain) : plain);
  return content;
}

OfficialFiles::OfficialFiles(std::filesystem::path root, std::string archive,
                             const std::vector<OfficialFile>& all)
    : root_(std::move(root)), archive_name_(std::move(archive)) {
  const bool unpacked =
      std::ranges::any_of(all, [this](const auto& file) { return is_there(root_, file); });
  if (is_file(root_))
    archive_ = root_;
  else if (!unpacked && is_file(root_ / archive_name_))
    archive_ = root_ / archive_name_;
  if (archive_.empty()) return;
  std::uint64_t limit = 0;
  for (const OfficialFile& file : all) limit += file.size_in_bytes;
  const auto wanted = [&all](const std::string& name) -> std::uint64_t {
    for (const OfficialFile& file : all)
      if (file.name == name) return file.size_in_bytes;
    return 0;
  };
  packed_ = read_tree(archive_, wanted, limit);
}

bool OfficialFiles::holds(const OfficialFile& file) const {
  return archive_.empty() ? is_there(root_, file) : packed_.contains(file.name);
}

std::string OfficialFiles::read(const OfficialFile& file) {
  if (!holds(file)) throw_missing(archive_.empty() ? root_ : archive_, file, archive_name_);
  if (archive_.empty()) return read_official(root_, file);
  std::string content = std::move(packed_.extract(file.name).mapped());
  check_size(content.size(), file, true, place_of(file));
  return content;
}

std::filesystem::path OfficialFiles::place_of(const OfficialFile& file) const {
  return (archive_.empty() ? root_ : archive_) / file.name;
}

void throw_bad_label(const std::filesystem::path& place, std::int64_t record, int label,
                     int classes) {
  throw data_error(place, "record ", record, " (counted from 0) has label ", label,
                   ", must be 0 to ", classes - 1);
}

void throw_bad_label(const std::filesystem::path& root, const OfficialFile& file,
                     std::int64_t record, int label, int classes) {
  throw_bad_label(root / file.name, record, label, classes);
}

}  // namespace pipewright
