// SPDX-License-Identifier: Apache-2.0
/// File descriptors that close themselves.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <utility>

namespace pipewright {

/// A file descriptor with an owner; children of this process do not inherit it.
class Descriptor {
 public:
  Descriptor() = default;
  /// Calls open(2) with these flags; a new file gets the mode 0644 less the umask. If it fails,
  /// number() is negative and errno has the reason.
  Descriptor(const std::filesystem::path& path, int flags)
      : number_(::open(path.c_str(), flags | O_CLOEXEC, 0644)) {}
  /// Takes ownership of an open descriptor; −1: none.
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() { close(); }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }

  int number() const { return number_; }
  bool is_open() const { return number_ >= 0; }
  void close() {
    if (number_ >= 0) ::close(number_);
    number_ = -1;
  }

 private:
  int number_ = -1;
};

}  // namespace pipewright
