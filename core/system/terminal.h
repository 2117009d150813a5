/// The one door to standard output and standard error. Names, paths and messages may hold any
/// bytes; what goes through this door is made printable (see printable.h), so that no text can act
/// on a terminal and no caller can forget. Only colours and the status line, which are ours, do.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace pipewright {

/// printf to standard output.
[[gnu::format(printf, 1, 2)]] void print(const char* format, ...);
/// printf to standard error. Lines of more than 4,000 characters are shortened in the middle.
[[gnu::format(printf, 1, 2)]] void print_error(const char* format, ...);
/// printf to either, or to another file; shortened as print_error() does unless it is standard
/// output.
[[gnu::format(printf, 2, 3)]] void print_to(std::FILE* out, const char* format, ...);
/// Text whose colours (escape sequences `ESC [ … m`) reach standard output as they are.
void print_colored(std::string_view text);

/// Whether escape sequences may go there: to a terminal, unless TERM is "dumb" or not set, or
/// NO_COLOR is set and not empty (no-color.org).
bool takes_escapes(std::FILE* out);

/// The last line of a terminal, drawn again and again. Of a file that is none it does nothing.
class StatusLine {
 public:
  /// `out` outlives this object.
  explicit StatusLine(std::FILE* out) : StatusLine(out, takes_escapes(out)) {}
  StatusLine(std::FILE* out, bool terminal) : out_(out), terminal_(terminal) {}
  ~StatusLine() { clear(); }
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  bool terminal() const { return terminal_; }
  /// Replaces what is shown by this line, cut to the terminal's width.
  void show(std::string_view text);
  /// Before anything else is printed.
  void clear();

 private:
  std::FILE* out_;
  bool terminal_, shown_ = false;
};

}  // namespace pipewright
