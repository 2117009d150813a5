// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/scratch.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "tests/fuzz/target.h"

namespace pipewright::fuzz {

MemoryFile::MemoryFile() : descriptor_(::memfd_create("fuzz", MFD_CLOEXEC)) {
  require(descriptor_ >= 0, "there is no file in memory");
  path_ = concat("/proc/self/fd/", descriptor_);
}

MemoryFile::~MemoryFile() {
  ::close(descriptor_);
}

const std::filesystem::path& MemoryFile::holding(std::string_view content) {
  const bool written = ::ftruncate(descriptor_, 0) == 0 &&
                       ::pwrite(descriptor_, content.data(), content.size(), 0) ==
                           static_cast<ssize_t>(content.size());
  require(written, "a file in memory cannot be written");
  return path_;
}

ScratchFolder::ScratchFolder() {
  const std::filesystem::path shared = "/dev/shm";
  const bool in_memory = std::getenv("TMPDIR") == nullptr && ::access(shared.c_str(), W_OK) == 0;
  std::string name =
      ((in_memory ? shared : std::filesystem::temp_directory_path()) / "pipewright-fuzz-XXXXXX")
          .string();
  require(::mkdtemp(name.data()) != nullptr, "there is no folder for files");
  path_ = name;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void ScratchFolder::clear() const {
  for (const auto& entry : std::filesystem::directory_iterator(path_))
    std::filesystem::remove_all(entry.path());
}

void ScratchFolder::write(const std::string& name, std::string_view content) const {
  std::ofstream out(path_ / name, std::ios::binary);
  out.write(content.data(), static_cast<std::streamsize>(content.size()));
  require(static_cast<bool>(out.flush()), "a file cannot be written");
}

}  // namespace pipewright::fuzz
