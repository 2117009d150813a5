// SPDX-License-Identifier: Apache-2.0
// `pipewright fetch`: downloads published data sets from their authors' addresses.
#include <algorithm>
#include <chrono>
#include <cstdio>

#include "core/base/error.h"
#include "core/fetch/fetch.h"
#include "core/fetch/sources.h"
#include "core/system/file.h"
#include "core/system/terminal.h"
#include "tools/command.h"
#include "tools/interrupt.h"

namespace pipewright {
namespace {

namespace fs = std::filesystem;

std::string size_text(std::uint64_t bytes) {
  return bytes_text(bytes);
}

std::uint64_t size_of(const Source& source) {
  std::uint64_t bytes = 0;
  for (const SourceFile& file : source.files) bytes += file.size_in_bytes;
  return bytes;
}

/// Progress of a download: on a terminal one line that is redrawn, otherwise a line for each tenth
/// of a slow download.
class Display {
 public:
  explicit Display(const SourceFile& file) : file_(file) {}

  void progress(std::uint64_t done) {
    const auto now = Clock::now();
    if (done < first_) first_ = done, start_ = drawn_ = now, tenth_ = tenth_of(done);
    const auto since = now - drawn_;
    const bool due = status_.terminal()
                         ? since > std::chrono::milliseconds(100)
                         : since > std::chrono::seconds(1) && tenth_of(done) > tenth_;
    if (!due) return;
    drawn_ = now;
    tenth_ = tenth_of(done);
    if (status_.terminal())
      status_.show(text(done, now));
    else
      print_error("%s\n", text(done, now).c_str());
  }
  void line(const std::string& text) {
    status_.clear();
    print_error("%s\n", text.c_str());
  }

 private:
  using Clock = std::chrono::steady_clock;

  std::uint64_t tenth_of(std::uint64_t done) const { return done * 10 / file_.size_in_bytes; }

  std::string text(std::uint64_t done, Clock::time_point now) const {
    const double seconds = std::chrono::duration<double>(now - start_).count();
    const double rate = static_cast<double>(done - first_) / std::max(seconds, 1e-3);
    const double left = static_cast<double>(file_.size_in_bytes - done) / std::max(rate, 1.0);
    return concat(file_.name, "  ", size_text(done), " of ", size_text(file_.size_in_bytes), ", ",
                  done * 100 / file_.size_in_bytes, " %, ", bytes_text(rate), "/s, ",
                  duration_text(left), " left");
  }

  const SourceFile& file_;
  StatusLine status_{stderr};
  std::uint64_t first_ = ~std::uint64_t{0}, tenth_ = 0;  // first_: bytes present before this call
  Clock::time_point start_, drawn_;
};

void print_sources() {
  print("What `pipewright fetch NAME` downloads, and its size\n");
  for (const Source& source : sources())
    if (!source.files.empty())
      print("  %-15s %10s  %s, %s\n", source.dataset.c_str(), size_text(size_of(source)).c_str(),
            source.title.c_str(), source.home.c_str());
  print("\nWhat has to be downloaded by hand\n");
  for (const Source& source : sources())
    if (source.files.empty())
      print("  %-15s %10s  %s, %s\n", source.dataset.c_str(), "", source.title.c_str(),
            source.home.c_str());
}

const Source& source_named(const std::string& name) {
  std::vector<std::string> known;
  for (const Source& source : sources())
    if (!source.files.empty()) known.push_back(source.dataset);
  const Source* source = find_source(name);
  if (source == nullptr)
    throw Error(ErrorKind::Experiment, concat("there is no data set to fetch called '", name, "'",
                                              suggestion(name, known)));
  if (source->files.empty())
    throw Error(ErrorKind::Experiment,
                concat("'", name, "' has to be downloaded by hand: ", source->title, ", from ",
                       source->home, ", into ", resolved_path(source->folder, ".").string()));
  return *source;
}

/// Address of a file. --address replaces it: for a source of one file by the address itself, for
/// several by the address followed by the file's name.
std::string address_of(const SourceFile& file, const Source& source, const std::string& given) {
  if (given.empty()) return file.address;
  if (!given.starts_with("http://") && !given.starts_with("https://"))
    throw Error(ErrorKind::Experiment,
                concat("--address is '", given, "'; expected http://… or https://…"));
  if (given.ends_with('/')) return given + file.name;
  return source.files.size() == 1 ? given : concat(given, "/", file.name);
}

void fetch_file(const SourceFile& file, const Download& wanted) {
  Display display(file);
  const Fetched fetched =
      fetch(wanted, {.progress = [&](std::uint64_t done) { display.progress(done); },
                     .notice = [&](const std::string& text) { display.line(text); },
                     .stop = interrupt_flag()});
  print("%s %s\n", fetched == Fetched::AlreadyThere ? "already there:" : "downloaded",
        wanted.target.c_str());
  std::fflush(stdout);
}

int run_fetch(const std::vector<std::string>& arguments) {
  CommandLine line(kFetch,
                   "Downloads a published data set from its authors' address to where the data set "
                   "looks for it, goes on where an earlier call ended, and checks size and "
                   "checksum. Without NAME: what there is. Proxies are those of the variables "
                   "http_proxy, https_proxy and no_proxy; SSL_CERT_FILE, SSL_CERT_DIR and "
                   "CURL_CA_BUNDLE name certificates. See the home of a data set for its terms of "
                   "use.");
  line.positional("NAME", "the data set, by its name in experiment files", 0, 1);
  line.option(
      "to", "FOLDER",
      "the folder to download into; default: the `root` of the data set, in ~/data or in the "
      "folder that PIPEWRIGHT_DATA names");
  line.option(
      "address", "URL",
      "download from here instead: the address of a copy of the file or, with a slash at the "
      "end or for several files, of the folder that holds them");
  line.option("patience", "S", "seconds without any byte after which a connection counts as lost",
              "60");
  if (!line.parse(arguments)) return 0;
  if (line.text("NAME").empty()) {
    print_sources();
    return 0;
  }
  const Source& source = source_named(line.text("NAME"));
  const int patience = line.integer("patience");
  if (patience < 1)
    throw Error(ErrorKind::Experiment, concat("--patience is ", patience, "; expected at least 1"));
  const fs::path folder =
      resolved_path(line.given("to") ? line.text("to") : source.folder, fs::current_path());
  for (const SourceFile& file : source.files)
    fetch_file(file, {.address = address_of(file, source, line.text("address")),
                      .target = folder / file.name,
                      .size_in_bytes = file.size_in_bytes,
                      .checksum = file.checksum,
                      .home = source.home,
                      .patience_in_seconds = patience});
  if (!source.unpack.empty())
    print("Unpack it: cd %s && %s\n", shell_quoted(folder.string()).c_str(), source.unpack.c_str());
  else if (line.given("to"))
    print("Use it: --set dataset.root=%s\n", shell_quoted(folder.string()).c_str());
  return 0;
}

}  // namespace

const Command kFetch{"fetch", "fetch [NAME] [--to FOLDER] [--address URL] [--patience S]",
                     "published data sets, downloaded and checked", run_fetch};

}  // namespace pipewright
