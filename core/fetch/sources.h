// SPDX-License-Identifier: Apache-2.0
/// Sources of published data sets: addresses of their files, with sizes and checksums. This is the
/// only place with addresses, and only `pipewright fetch` connects to them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace pipewright {

struct SourceFile {
  std::string name;     ///< a path below the source's folder
  std::string address;  ///< http or https
  std::uint64_t size_in_bytes;
  std::string checksum;  ///< published by its authors: md5 (32 digits) or SHA-256 (64)
};

struct Source {
  std::string dataset;  ///< registered name, also the argument of `pipewright fetch`
  std::string title;
  std::string home;                    ///< web page with description and terms of use
  std::string folder;                  ///< default folder of the data set's files
  std::vector<SourceFile> files = {};  ///< empty: the user must get them from `home`
  std::string unpack = {};  ///< shell command that unpacks an archive, if one must be unpacked
};

/// All sources, sorted by name.
const std::vector<Source>& sources();
/// The source of a data set; nullptr if it is built in or the user's own.
const Source* find_source(const std::string& dataset);
/// Adds a source, for programs with data sets of their own. Call it before several threads use
/// sources().
bool add_source(Source source);

/// The end of a message about a missing file, "; `pipewright fetch cifar10` downloads CIFAR-10", or
/// "" if there is no source.
std::string fetch_advice(const std::string& dataset);

}  // namespace pipewright
