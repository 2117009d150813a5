/// Where the files of published data sets are to be had, and how to know that they are whole. The
/// only place in Pipewright with addresses; nothing but `pipewright fetch` goes there.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace pipewright {

struct SourceFile {
  std::string name;     ///< a path below the source's folder
  std::string address;  ///< http or https
  std::uint64_t size_in_bytes;
  std::string checksum;  ///< as its authors publish it: md5 (32 digits) or SHA-256 (64)
};

struct Source {
  std::string dataset;  ///< the registered name, also that of `pipewright fetch`
  std::string title;
  std::string home;                    ///< for people: where it is described, and its terms
  std::string folder;                  ///< where the data set looks, unless told otherwise
  std::vector<SourceFile> files = {};  ///< none: to be got by hand, from `home`
  std::string unpack = {};  ///< the shell's command, in that folder, where an archive is not read
};

/// All of them, by name.
const std::vector<Source>& sources();
/// nullptr for a data set that is built in, or the user's own.
const Source* find_source(const std::string& dataset);
/// For programs with data sets of their own; before sources() is called from several threads.
bool add_source(Source source);

/// "; `pipewright fetch cifar10` downloads CIFAR-10", to be put at the end of a message that says
/// what is missing; "" where it cannot.
std::string fetch_advice(const std::string& dataset);

}  // namespace pipewright
