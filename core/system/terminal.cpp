// SPDX-License-Identifier: Apache-2.0
#include "core/system/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cstdarg>
#include <cstdlib>
#include <new>

#include "core/base/printable.h"

namespace pipewright {
namespace {

constexpr std::size_t kLongestLine = 4000;  // characters; standard output has no limit
constexpr std::size_t kUsualWidth = 100;    // columns, where the terminal does not tell its own

void write(std::FILE* out, std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), out);
}

std::string formatted(const char* format, std::va_list arguments) {
  std::va_list again;
  va_copy(again, arguments);
  const int length = std::vsnprintf(nullptr, 0, format, again);
  va_end(again);
  if (length < 0) return format;
  std::string text(static_cast<std::size_t>(length), '\0');
  std::vsnprintf(text.data(), text.size() + 1, format, arguments);
  return text;
}

/// Prints without allocating, so that the message that memory has run out still gets through.
void print_without_memory(std::FILE* out, const char* format, std::va_list arguments) {
  std::array<char, 1000> text{};
  std::vsnprintf(text.data(), text.size(), format, arguments);
  for (char& c : text)
    if ((c != '\0' && c != '\n' && c < ' ') || c == 0x7F) c = '?';
  write(out, text.data());
}

void print_formatted(std::FILE* out, const char* format, std::va_list arguments) {
  const std::size_t most = out == stdout ? std::string_view::npos : kLongestLine;
  std::va_list again;
  va_copy(again, arguments);
  try {
    write(out, printable_lines(formatted(format, arguments), most));
  } catch (const std::bad_alloc&) {
    print_without_memory(out, format, again);
  }
  va_end(again);
}

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

}  // namespace

std::size_t terminal_width(std::FILE* out) {
  winsize size{};
  const bool known = ::ioctl(::fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : kUsualWidth;
}

void print(const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  print_formatted(stdout, format, arguments);
  va_end(arguments);
}

void print_error(const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  print_formatted(stderr, format, arguments);
  va_end(arguments);
}

void print_to(std::FILE* out, const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  print_formatted(out, format, arguments);
  va_end(arguments);
}

void print_colored(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t begin = text.find("\033[");
    out += printable_lines(text.substr(0, begin));
    if (begin == std::string_view::npos) break;
    const std::size_t end = text.find_first_not_of("0123456789;", begin + 2);
    const bool color = end != std::string_view::npos && text[end] == 'm';
    const std::string_view sequence = text.substr(begin, color ? end + 1 - begin : 1);
    out += color ? std::string(sequence) : printable(sequence);
    text.remove_prefix(begin + sequence.size());
  }
  write(stdout, out);
}

bool takes_escapes(std::FILE* out) {
  if (::isatty(::fileno(out)) == 0 || is_set("NO_COLOR") || !is_set("TERM")) return false;
  return std::string_view(std::getenv("TERM")) != "dumb";
}

void StatusLine::show(std::string_view text) {
  if (!terminal_) return;
  write(out_, "\r\033[K" + cut_to(printable(text), terminal_width(out_) - 1));
  std::fflush(out_);
  shown_ = true;
}

void StatusLine::clear() {
  if (!shown_) return;
  write(out_, "\r\033[K");
  std::fflush(out_);
  shown_ = false;
}

}  // namespace pipewright
