// SPDX-License-Identifier: Apache-2.0
#include "core/records/sqlite.h"

#include <sqlite3.h>

#include "core/base/error.h"

namespace pipewright {

Database::Database(const std::filesystem::path& file) : file_(file.string()) {
  sqlite3* handle = nullptr;
  const int code = sqlite3_open(file_.c_str(), &handle);
  handle_.reset(handle);
  if (code != SQLITE_OK) fail("cannot open");
}

void Database::execute(const char* sql) {
  if (sqlite3_exec(handle_.get(), sql, nullptr, nullptr, nullptr) != SQLITE_OK)
    fail("cannot execute");
}

void Database::fail(const char* doing) const {
  throw Error(ErrorKind::Data, concat(doing, ": ", std::string_view(sqlite3_errmsg(handle_.get()))),
              file_);
}

void Database::Close::operator()(sqlite3* handle) const {
  sqlite3_close(handle);
}

Statement::Statement(const Database& database, const char* sql) : database_(&database) {
  sqlite3_stmt* handle = nullptr;
  check(sqlite3_prepare_v2(database.handle_.get(), sql, -1, &handle, nullptr));
  handle_.reset(handle);
}

Statement& Statement::bind(const std::string& text) {
  check(sqlite3_bind_text64(handle_.get(), ++bound_, text.data(), text.size(), SQLITE_TRANSIENT,
                            SQLITE_UTF8));
  return *this;
}

Statement& Statement::bind(std::int64_t integer) {
  check(sqlite3_bind_int64(handle_.get(), ++bound_, integer));
  return *this;
}

Statement& Statement::bind(double number) {
  check(sqlite3_bind_double(handle_.get(), ++bound_, number));
  return *this;
}

bool Statement::step() {
  const int code = sqlite3_step(handle_.get());
  if (code == SQLITE_ROW) return true;
  if (code != SQLITE_DONE) database_->fail("cannot execute");
  bound_ = 0;
  check(sqlite3_reset(handle_.get()));
  return false;
}

std::string Statement::text(int column) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(handle_.get(), column));
  const int size = sqlite3_column_bytes(handle_.get(), column);
  return text == nullptr ? std::string() : std::string(text, static_cast<std::size_t>(size));
}

std::int64_t Statement::integer(int column) const {
  return sqlite3_column_int64(handle_.get(), column);
}

double Statement::number(int column) const {
  return sqlite3_column_double(handle_.get(), column);
}

void Statement::check(int code) const {
  if (code != SQLITE_OK) database_->fail("cannot execute");
}

void Statement::Finalize::operator()(sqlite3_stmt* handle) const {
  sqlite3_finalize(handle);
}

}  // namespace pipewright
