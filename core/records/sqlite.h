/// SQLite behind two small values: a database that closes itself and prepared statements.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

struct sqlite3;
struct sqlite3_stmt;

namespace pipewright {

/// One open database. All failures are Error{Data} with the file and SQLite's own words.
class Database {
 public:
  /// Creates the file where it is not there.
  explicit Database(const std::filesystem::path& file);

  /// Statements without values, such as CREATE and COMMIT; several, separated by ';'.
  void execute(const char* sql);

 private:
  friend class Statement;
  [[noreturn]] void fail(const char* doing) const;

  struct Close {
    void operator()(sqlite3* handle) const;
  };
  std::string file_;
  std::unique_ptr<sqlite3, Close> handle_;
};

/// One statement with `?` for its values, which are bound from left to right. Outlived by its
/// database.
class Statement {
 public:
  Statement(const Database& database, const char* sql);

  Statement& bind(const std::string& text);
  Statement& bind(std::int64_t integer);
  Statement& bind(double number);  ///< NaN becomes NULL
  /// Goes to the next row; false, and ready to be bound anew, when there is none.
  bool step();

  std::string text(int column) const;
  std::int64_t integer(int column) const;
  double number(int column) const;

 private:
  void check(int code) const;

  struct Finalize {
    void operator()(sqlite3_stmt* handle) const;
  };
  const Database* database_;
  std::unique_ptr<sqlite3_stmt, Finalize> handle_;
  int bound_ = 0;
};

}  // namespace pipewright
