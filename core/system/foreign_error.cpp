// SPDX-License-Identifier: Apache-2.0
#include "core/system/foreign_error.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <stdexcept>
#include <system_error>

#include "core/base/error_at.h"
#include "core/system/machine_limits.h"

namespace pipewright {
namespace {

/// The beginning of oneDNN's message whenever it cannot create an engine, a primitive or a memory
/// object. LibTorch asks for these in ways that fail only for lack of memory.
constexpr std::string_view kNoParts = "could not create a";
/// Parts of messages by which LibTorch says that memory ran out, or that more was asked for than
/// can exist.
constexpr std::array<std::string_view, 7> kNoMemory{kNoParts,
                                                    "can't allocate memory",
                                                    "not enough memory",
                                                    "out of memory",
                                                    "size calculation overflowed",
                                                    "numel: integer multiplication overflow",
                                                    "called with negative number"};

/// LibTorch's words for a number, such as a learning rate, that its tensors cannot hold.
constexpr std::string_view kTooLarge = "without overflow";

/// LibTorch's words behind the name of an operator that adds in any order.
constexpr std::string_view kUnordered = " does not have a deterministic implementation";

bool is_about_memory(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr ||
      dynamic_cast<const std::length_error*>(&error) != nullptr)
    return true;
  const std::string line = first_line(error);
  return std::ranges::any_of(
      kNoMemory, [&](std::string_view text) { return line.find(text) != std::string::npos; });
}

/// ": 149011.61 GiB were asked for at once" for "… tried to allocate 160000000000000 bytes …"; ""
/// if the message has no number.
std::string asked_for(const std::string& line) {
  constexpr std::string_view kBefore = "tried to allocate ";
  const std::size_t at = line.find(kBefore);
  if (at == std::string::npos) return {};
  const double bytes = std::strtod(line.c_str() + at + kBefore.size(), nullptr);
  return bytes > 0 ? concat(": ", bytes_text(bytes), " were asked for at once") : std::string();
}

std::string memory_message(const std::exception& error) {
  const std::string line = first_line(error), limit = memory_limit().text;
  const bool larger_than_any = dynamic_cast<const std::length_error*>(&error) != nullptr ||
                               line.find("overflow") != std::string::npos ||
                               line.find("negative") != std::string::npos;
  return concat("memory ran out",
                larger_than_any ? ": more was asked for than any machine has" : asked_for(line),
                line.starts_with(kNoParts) ? concat(" (oneDNN ", line, ")") : std::string(),
                limit.empty() ? "" : "; ", limit);
}

/// The Error for a refusal of the file system: "cannot remove all: Permission denied".
Error file_system_error(const std::filesystem::filesystem_error& error) {
  constexpr std::string_view kBefore = "filesystem error: ";
  const std::string_view said = error.what();
  const std::size_t at = said.find(kBefore);
  const std::string_view rest = at == std::string::npos ? said : said.substr(at + kBefore.size());
  const std::string_view what = rest.substr(0, rest.find(": "));
  return data_error(error.path1(),
                    what.find("cannot") == std::string::npos ? "cannot be used, " : "", what, ": ",
                    errno_text(error.code().value()));
}

}  // namespace

std::string first_line(const std::exception& error) {
  const std::string text = error.what();
  const std::size_t unordered = text.find(kUnordered);
  if (unordered != std::string::npos)
    return concat(
        text.substr(0, unordered),
        " adds in another order in every run, so its results would not be the same twice; "
        "put the stage that needs it on the CPU, as in pipeline.device: [cuda:0, cpu]");
  return text.substr(0, text.find('\n'));
}

Error thread_error(const std::string& whose, const std::exception& error, ErrorKind resource) {
  const auto* const system = dynamic_cast<const std::system_error*>(&error);
  if (system == nullptr && is_about_memory(error))
    return Error(resource,
                 concat("a thread for ", whose, " cannot be started: ", memory_message(error)));
  return Error(resource, concat("a thread for ", whose, " cannot be started: ",
                                system != nullptr ? system->code().message() : first_line(error),
                                threads_limit_text()));
}

std::optional<Error> machine_error(const std::exception& error, ErrorKind resource) {
  if (const auto* files = dynamic_cast<const std::filesystem::filesystem_error*>(&error))
    return file_system_error(*files);
  if (const auto* system = dynamic_cast<const std::system_error*>(&error)) {
    if (system->code() == std::errc::resource_unavailable_try_again)
      return thread_error("this run", error, resource);
    return Error(resource, concat("the system refused: ", first_line(error)));
  }
  if (is_about_memory(error)) return Error(resource, memory_message(error));
  if (const std::string line = first_line(error); line.find(kTooLarge) != std::string::npos)
    return Error(
        ErrorKind::NotFinite,
        concat("a number is too large for the type that the training computes with: ", line));
  return std::nullopt;
}

Error foreign_error(const std::exception& error, ErrorKind resource) {
  if (const auto* known = dynamic_cast<const Error*>(&error)) return *known;
  if (const auto machine = machine_error(error, resource)) return *machine;
  return Error(ErrorKind::Bug, concat("this is a bug in Pipewright: ", first_line(error)));
}

}  // namespace pipewright
