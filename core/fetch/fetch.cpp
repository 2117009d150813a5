// SPDX-License-Identifier: Apache-2.0
#include "core/fetch/fetch.h"

#include "core/base/error.h"
#include "core/fetch/part_file.h"
#include "core/fetch/transfer.h"
#include "core/system/file_checksum.h"

namespace pipewright {
namespace {

namespace fs = std::filesystem;
using Kind = TransferEnd::Kind;

constexpr int kMostLosses = 10;  // lost connections after which a call gives up

Checksum::Kind kind_of(const std::string& checksum) {
  return checksum.size() == 32 ? Checksum::Kind::Md5 : Checksum::Kind::Sha256;
}

std::string checksum_name(const std::string& checksum) {
  return kind_of(checksum) == Checksum::Kind::Md5 ? "md5" : "SHA-256";
}

std::string progress_text(const PartFile& part, const Download& wanted) {
  return concat(bytes_text(part.size()), " of ", bytes_text(wanted.size_in_bytes));
}

/// Whether the requested file is there. Throws Error{Data} if another file has its name.
bool is_there(const Download& wanted) {
  std::error_code missing;
  if (fs::symlink_status(wanted.target, missing).type() == fs::file_type::not_found) return false;
  const auto refuse = [&](const std::string& what) {
    throw Error(ErrorKind::Data,
                concat("is there, but ", what,
                       ": it is not the official file, or damaged; move it away, or choose "
                       "another folder with --to"),
                wanted.target.string());
  };
  const std::uint64_t size = fs::file_size(wanted.target, missing);
  if (missing) refuse("is no file");
  if (size != wanted.size_in_bytes)
    refuse(concat("has ", size, " bytes instead of ", wanted.size_in_bytes));
  const std::string found = file_checksum(wanted.target, kind_of(wanted.checksum));
  if (found != wanted.checksum)
    refuse(concat("its ", checksum_name(found), " is ", found, " instead of ", wanted.checksum));
  return true;
}

void check_room(const Download& wanted, const PartFile& part) {
  std::error_code unknown;
  const fs::space_info space = fs::space(part.path().parent_path(), unknown);
  const std::uint64_t needed = wanted.size_in_bytes - part.size();
  if (!unknown && space.available < needed)
    throw Error(
        ErrorKind::Data,
        concat("the disk has room for ", bytes_text(space.available), ", but the download needs ",
               bytes_text(needed), "; make room, or choose another folder with --to"),
        part.path().string());
}

[[noreturn]] void give_up(const TransferEnd& end, const Download& wanted, const PartFile& part) {
  std::string advice;
  if (end.kind == Kind::Lost && part.size() > 0)
    advice = concat("; ", progress_text(part, wanted), " are in ", part.path().string(),
                    ", the same command goes on from there");
  else
    advice =
        concat(end.kind == Kind::Refused ? "" : "; check the network and its proxy",
               "; give the address of a copy with --address, or download the file by hand, see ",
               wanted.home);
  throw Error(ErrorKind::Data, concat("cannot download: ", end.reason, advice), wanted.address);
}

/// Downloads the missing bytes. Reconnects after a loss only if the lost connection brought bytes.
void download(const Download& wanted, const DownloadWatch& watch, PartFile& part) {
  std::uint64_t most = part.size();
  int losses = 0;
  bool started_again = false;
  if (watch.notice && part.size() < wanted.size_in_bytes)
    watch.notice(concat(wanted.target.filename().string(), ": ",
                        part.size() > 0 ? progress_text(part, wanted) + " are there, the rest"
                                        : bytes_text(wanted.size_in_bytes),
                        " from ", wanted.address));
  while (part.size() < wanted.size_in_bytes) {
    const TransferEnd end = transfer(wanted, watch, part);
    if (end.kind == Kind::Complete) return;
    if (end.kind == Kind::Interrupted)
      throw Error(ErrorKind::Interrupted,
                  concat("interrupted; ", progress_text(part, wanted),
                         " are there, the same command goes on"),
                  part.path().string());
    if (end.kind == Kind::NotThatPart && !started_again) {
      started_again = true;
      part.clear();
      most = 0;
      continue;
    }
    if (end.kind != Kind::Lost || part.size() <= most || ++losses == kMostLosses)
      give_up(end, wanted, part);
    most = part.size();
    if (watch.notice) watch.notice(concat(end.reason, "; going on"));
  }
}

void check(const Download& wanted, PartFile& part) {
  const std::string found = file_checksum(part.path(), kind_of(wanted.checksum));
  if (found == wanted.checksum) return;
  part.remove();
  throw Error(ErrorKind::Data,
              concat("what was downloaded has ", checksum_name(found), " ", found, ", expected ",
                     wanted.checksum,
                     "; it has been thrown away, and the same command starts anew; if it happens "
                     "again, give the address of a copy with --address"),
              wanted.address);
}

}  // namespace

Fetched fetch(const Download& wanted, const DownloadWatch& watch) {
  if (is_there(wanted)) return Fetched::AlreadyThere;
  PartFile part(wanted.target);
  if (part.size() > wanted.size_in_bytes) part.clear();
  check_room(wanted, part);
  download(wanted, watch, part);
  check(wanted, part);
  part.finish();
  return Fetched::Downloaded;
}

}  // namespace pipewright
