// SPDX-License-Identifier: Apache-2.0
#include "core/base/stamp.h"

#include "core/base/text.h"

namespace pipewright {
namespace {

/// "1.0" of "1.0.7" and of "1.0.7-rc.2"
std::string minor_version(std::string_view version) {
  return std::string(version.substr(0, version.find('.', version.find('.') + 1)));
}

/// The part of a version that a plugin must share: "1.0" of "1.0.7", "1.0-rc.2" of "1.0.7-rc.2".
std::string compatible_version(std::string_view version) {
  const std::size_t candidate = version.find('-');
  return concat(minor_version(version), candidate == std::string_view::npos
                                            ? std::string_view()
                                            : version.substr(candidate));
}

}  // namespace

std::vector<Stamp> read_stamps(std::string_view bytes) {
  constexpr std::string_view kStart = PIPEWRIGHT_STAMP_START;
  std::vector<Stamp> stamps;
  for (std::size_t at = bytes.find(kStart); at != std::string_view::npos;
       at = bytes.find(kStart, at)) {
    at += kStart.size();
    const std::size_t end = bytes.find('\0', at);
    if (end == std::string_view::npos) break;
    const std::vector<std::string> parts = split(bytes.substr(at, end - at), '|');
    // The constant above puts the start, but no whole stamp, into this program's own file.
    if (parts.size() == 5) stamps.push_back({parts[0], parts[1], parts[2], parts[3], parts[4]});
  }
  return stamps;
}

std::string misfit(const Stamp& stamp, std::string_view libtorch) {
  const std::string wanted = minor_version(PIPEWRIGHT_VERSION);
  if (compatible_version(stamp.version) != compatible_version(PIPEWRIGHT_VERSION))
    return concat("was compiled with Pipewright ", stamp.version, ", this is " PIPEWRIGHT_VERSION,
                  "; build it again with find_package(Pipewright ", wanted, ")");
  if (stamp.standard_library != PIPEWRIGHT_STANDARD_LIBRARY)
    return concat("was compiled with ", stamp.standard_library,
                  ", this Pipewright with " PIPEWRIGHT_STANDARD_LIBRARY,
                  "; build it again with the same standard library");
  if (stamp.libtorch != PIPEWRIGHT_WITHOUT_LIBTORCH && stamp.libtorch != libtorch)
    return concat("was compiled with LibTorch ", stamp.libtorch, ", this Pipewright with ",
                  libtorch, "; build it again with find_package(Pipewright ", wanted, ")");
  return {};
}

}  // namespace pipewright
