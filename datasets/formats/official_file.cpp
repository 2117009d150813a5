#include "datasets/formats/official_file.h"

#include "core/base/error.h"
#include "core/base/file.h"
#include "datasets/formats/gzip.h"

namespace pipewright {
namespace {

bool on_disk(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

std::filesystem::path gzipped(const std::filesystem::path& path) {
  return path.string() + ".gz";
}

}  // namespace

bool is_there(const std::filesystem::path& root, const OfficialFile& file) {
  return on_disk(root / file.name) || on_disk(gzipped(root / file.name));
}

std::string read_official(const std::filesystem::path& root, const OfficialFile& file) {
  const std::filesystem::path plain = root / file.name;
  if (!is_there(root, file))
    throw Error(ErrorKind::Data,
                concat("no such file, nor ", file.name, ".gz beside it. It is part of ",
                       file.origin, ". Set dataset.root to the folder that holds it"),
                plain.string());
  const bool packed = !on_disk(plain);
  std::string content =
      packed ? read_gzip(gzipped(plain), file.size_in_bytes) : read_file(plain, file.size_in_bytes);
  if (content.size() != file.size_in_bytes)
    throw Error(ErrorKind::Data,
                concat("has ", content.size(), " bytes", std::string(packed ? " unpacked" : ""),
                       ", the official file has ", file.size_in_bytes, ": it is truncated"),
                (packed ? gzipped(plain) : plain).string());
  return content;
}

void throw_bad_label(const std::filesystem::path& root, const OfficialFile& file,
                     std::int64_t record, int label, int classes) {
  throw Error(ErrorKind::Data,
              concat("record ", record, " (counted from 0) has label ", label, ", must be 0 to ",
                     classes - 1),
              (root / file.name).string());
}

}  // namespace pipewright
