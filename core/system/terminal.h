// SPDX-License-Identifier: Apache-2.0
/// The only way to standard output and standard error. Names, paths and messages may hold any
/// bytes; all text is made printable here (see printable.h), so that no text can control the
/// terminal and no caller can forget it. Only our own colours and the status line use escape
/// sequences.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace pipewright {

/// printf to standard output.
[[gnu::format(printf, 1, 2)]] void print(const char* format, ...);
/// printf to standard error. Lines of more than 4,000 characters are shortened in the middle.
[[gnu::format(printf, 1, 2)]] void print_error(const char* format, ...);
/// printf to standard output, standard error or another file. Long lines are shortened as by
/// print_error(), except on standard output.
[[gnu::format(printf, 2, 3)]] void print_to(std::FILE* out, const char* format, ...);
/// Prints to standard output; colours in the text (escape sequences `ESC [ … m`) are kept.
void print_colored(std::string_view text);

/// Whether escape sequences may be written to `out`: it is a terminal, TERM is set and not "dumb",
/// and NO_COLOR is not set or is empty (no-color.org).
bool takes_escapes(std::FILE* out);

/// The columns of a terminal; 100 if it does not say how many it has.
std::size_t terminal_width(std::FILE* out);

/// A status line: the last line of a terminal, drawn again and again. On a file that is no terminal
/// it does nothing.
class StatusLine {
 public:
  /// `out` must outlive this object.
  explicit StatusLine(std::FILE* out) : StatusLine(out, takes_escapes(out)) {}
  StatusLine(std::FILE* out, bool terminal) : out_(out), terminal_(terminal) {}
  ~StatusLine() { clear(); }
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  bool terminal() const { return terminal_; }
  /// Shows this text in place of the one before, cut to the terminal's width.
  void show(std::string_view text);
  /// Erases the line. Call it before anything else is printed.
  void clear();

 private:
  std::FILE* out_;
  bool terminal_, shown_ = false;
};

}  // namespace pipewright
