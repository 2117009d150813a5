// SPDX-License-Identifier: Apache-2.0
#include "core/processes/start_words.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "core/base/error.h"
#include "core/system/machine_limits.h"

namespace pipewright {
namespace {

constexpr const char* kVariable = "PIPEWRIGHT_LAUNCHER";
constexpr std::array<std::pair<StartWord::Step, std::string_view>, 4> kWords{{
    {StartWord::Step::Begun, "begun "},
    {StartWord::Step::Speaks, "speaks "},
    {StartWord::Step::Said, "said "},
    {StartWord::Step::Ends, "ends "},
}};

struct Address {
  sockaddr_un name{};
  socklen_t length = sizeof name;
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&name); }
};
/// Bytes of an address before its name, with the zero that a name without a file begins with.
constexpr std::size_t kBeforeName = offsetof(sockaddr_un, sun_path) + 1;

/// An address in Linux's abstract namespace: it begins with a zero and has no file.
Address abstract_address(std::string_view name) {
  Address address;
  address.name.sun_family = AF_UNIX;
  const std::size_t size = std::min(name.size(), sizeof address.name.sun_path - 1);
  std::memcpy(address.name.sun_path + 1, name.data(), size);
  address.length = static_cast<socklen_t>(kBeforeName + size);
  return address;
}

Descriptor datagram_socket() {
  return Descriptor(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

std::optional<StartWord> understood(std::string_view text) {
  for (const auto& [step, start] : kWords) {
    if (!text.starts_with(start)) continue;
    const char* const end = text.data() + text.size();
    StartWord word{step};
    const auto read = std::from_chars(text.data() + start.size(), end, word.rank);
    if (read.ec == std::errc() && read.ptr == end) return word;
  }
  return std::nullopt;
}

}  // namespace

StartEar::StartEar() : socket_(datagram_socket()) {
  Address own;
  own.name.sun_family = AF_UNIX;
  const int yes = 1;
  // An address without a name is given one that no other process has, in five characters.
  if (!socket_.is_open() ||
      ::setsockopt(socket_.number(), SOL_SOCKET, SO_PASSCRED, &yes, sizeof yes) != 0 ||
      ::bind(socket_.number(), own.get(), sizeof own.name.sun_family) != 0 ||
      ::getsockname(socket_.number(), own.get(), &own.length) != 0)
    throw Error(ErrorKind::Worker,
                concat("cannot listen to the processes of the run: ", errno_text(errno)));
  name_.assign(own.name.sun_path + 1, own.length - kBeforeName);
}

std::pair<std::string, std::string> StartEar::variable() const {
  return {kVariable, name_};
}

std::optional<StartWord> StartEar::hear() const {
  for (;;) {
    char text[32];
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(ucred))];
    iovec part{text, sizeof text};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t size = ::recvmsg(socket_.number(), &message, MSG_DONTWAIT);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return std::nullopt;
    const cmsghdr* const header = CMSG_FIRSTHDR(&message);
    if (header == nullptr || header->cmsg_type != SCM_CREDENTIALS) continue;
    ucred sender{};
    std::memcpy(&sender, CMSG_DATA(header), sizeof sender);
    if (sender.uid != ::geteuid()) continue;
    if (const auto word = understood({text, static_cast<std::size_t>(size)})) return word;
  }
}

bool say_at_start(const StartWord& word) {
  const char* const name = std::getenv(kVariable);
  if (name == nullptr) return false;
  const Descriptor socket = datagram_socket();
  Address launcher = abstract_address(name);
  const auto* const known =
      std::ranges::find(kWords, word.step, &std::pair<StartWord::Step, std::string_view>::first);
  const std::string text = concat(known->second, word.rank);
  return socket.is_open() &&
         ::sendto(socket.number(), text.data(), text.size(), MSG_NOSIGNAL, launcher.get(),
                  launcher.length) == static_cast<ssize_t>(text.size());
}

}  // namespace pipewright
