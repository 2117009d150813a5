// SPDX-License-Identifier: Apache-2.0
#include "core/base/checksum.h"

#include <openssl/evp.h>

#include <array>

#include "core/base/error.h"

namespace pipewright {

struct Checksum::State {
  State() = default;
  ~State() { EVP_MD_CTX_free(context); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  EVP_MD_CTX* context = EVP_MD_CTX_new();
};

Checksum::Checksum(Kind kind) : state_(std::make_unique<State>()) {
  const bool md5 = kind == Kind::Md5;
  if (state_->context == nullptr ||
      EVP_DigestInit_ex(state_->context, md5 ? EVP_md5() : EVP_sha256(), nullptr) != 1)
    throw Error(ErrorKind::Data,
                concat("the OpenSSL of this machine does not compute ", md5 ? "MD5" : "SHA-256",
                       ": its configuration forbids that, or memory has run out"));
}

Checksum::~Checksum() = default;
Checksum::Checksum(Checksum&&) noexcept = default;
Checksum& Checksum::operator=(Checksum&&) noexcept = default;

void Checksum::add(std::string_view bytes) {
  PIPEWRIGHT_CHECK(EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()) == 1);
}

std::string Checksum::digits() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
  unsigned size = 0;
  PIPEWRIGHT_CHECK(EVP_DigestFinal_ex(state_->context, bytes.data(), &size) == 1);
  std::string text;
  for (unsigned i = 0; i < size; ++i)
    for (const int shift : {4, 0}) text += "0123456789abcdef"[bytes[i] >> shift & 0xf];
  return text;
}

namespace {

std::string digits_of(Checksum::Kind kind, std::string_view bytes) {
  Checksum checksum(kind);
  checksum.add(bytes);
  return checksum.digits();
}

}  // namespace

std::string md5(std::string_view bytes) {
  return digits_of(Checksum::Kind::Md5, bytes);
}

std::string sha256(std::string_view bytes) {
  return digits_of(Checksum::Kind::Sha256, bytes);
}

}  // namespace pipewright
