/// A published file, from its address to its place on disk, whole and proved so.
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
  std::string home;              ///< for people, in messages
  int patience_in_seconds = 60;  ///< without a byte, until the connection counts as lost
};

/// Who looks on. Both functions may be empty.
struct DownloadWatch {
  std::function<void(std::uint64_t done)> progress;     ///< bytes of the file so far
  std::function<void(const std::string& line)> notice;  ///< a line for people
  const std::atomic<bool>* stop = nullptr;              ///< set: end soon
};

enum class Fetched : std::uint8_t { AlreadyThere, Downloaded };

/// Downloads into `target`.part, going on where an earlier call ended, and gives the file its name
/// when size and checksum are right. A lost connection is taken up again as long as that helps.
/// Throws Error{Data}: the server, the disk, or a checksum; what was downloaded is kept, except for
/// a whole file with another checksum; and if there is another file at `target`, which stays.
/// Throws Error{Interrupted} when stopped.
Fetched fetch(const Download& wanted, const DownloadWatch& watch);

}  // namespace pipewright
