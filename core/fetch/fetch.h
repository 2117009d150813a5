// SPDX-License-Identifier: Apache-2.0
/// Downloads one URL, resuming as needed, and renames it once the checksum matches.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

namespace pipewright {

struct Download {
  std::string address;
  std::filesystem::path target;
  std::uint64_t size_in_bytes;
  std::string checksum;          ///< lower-case hexadecimal: md5 (32 digits) or SHA-256 (64)
  std::string home;              ///< web page for users, in messages
  int patience_in_seconds = 60;  ///< time without a byte after which the connection counts as lost
};

/// Observer of a download. Both functions may be empty, and `stop` null.
struct DownloadWatch {
  std::function<void(std::uint64_t done)> progress;     ///< bytes of the file so far
  std::function<void(const std::string& line)> notice;  ///< a line for the user
  const std::atomic<bool>* stop = nullptr;              ///< once true, fetch() ends soon
};

enum class Fetched : std::uint8_t { AlreadyThere, Downloaded };

/// Downloads into `target`.part, resuming an earlier call, and renames it to `target` if size and
/// checksum are right. Reconnects after a lost connection as long as that brings more bytes. Throws
/// Error{Data} if the server or the disk fails or the checksum is wrong (the part is kept, except a
/// complete one with a wrong checksum), and if another file is at `target`, which is not touched.
/// Throws Error{Interrupted} once stopped.
Fetched fetch(const Download& wanted, const DownloadWatch& watch);

}  // namespace pipewright
