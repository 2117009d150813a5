// SPDX-License-Identifier: Apache-2.0
/// Two small classes around SQLite: a database and a prepared statement, both freed automatically.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

struct sqlite3;
struct sqlite3_stmt;

namespace pipewright {

/// One open database. All failures are Error{Data} with the file and SQLite's message.
class Database {
 public:
  /// Opens the file, or creates it.
  explicit Database(const std::filesystem::path& file);

  /// Executes statements without values, such as CREATE and COMMIT, separated by ';'.
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

/// One prepared statement with `?` for its values, which are bound from left to right. Its database
/// must outlive it.
class Statement {
 public:
  Statement(const Database& database, const char* sql);

  Statement& bind(const std::string& text);
  Statement& bind(std::int64_t integer);
  Statement& bind(double number);  ///< NaN becomes NULL
  /// Moves to the next row. Returns false if there is none; values can then be bound again.
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
