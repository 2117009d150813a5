// SPDX-License-Identifier: Apache-2.0
#include "core/fetch/transfer.h"

#include <curl/curl.h>

#include <array>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>

#include "core/base/error.h"
#include "core/base/version.h"

namespace pipewright {
namespace {

using Kind = TransferEnd::Kind;

constexpr long kOk = 200, kPartial = 206, kNoSuchRange = 416;
constexpr long kSecondsToConnect = 30, kRedirections = 10;

/// Callbacks of libcurl. It appends the body to the part, after checking that it belongs there.
class Receiver {
 public:
  Receiver(const Download& wanted, const DownloadWatch& watch, PartFile& part, CURL* curl)
      : wanted_(wanted), watch_(watch), part_(part), asked_from_(part.size()), curl_(curl) {}

  static std::size_t on_header(char* bytes, std::size_t, std::size_t count, void* self) {
    static_cast<Receiver*>(self)->header({bytes, count});
    return count;
  }
  static std::size_t on_body(char* bytes, std::size_t, std::size_t count, void* self) {
    return static_cast<Receiver*>(self)->body({bytes, count}) ? count : 0;
  }
  static int on_progress(void* self, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
    const auto* stop = static_cast<Receiver*>(self)->watch_.stop;
    return stop != nullptr && stop->load() ? 1 : 0;
  }

  /// An exception, or an end of the transfer, that a callback has decided on. It overrides
  /// libcurl's code.
  const std::exception_ptr& fault() const { return fault_; }
  const std::optional<TransferEnd>& refusal() const { return refusal_; }

 private:
  /// Reads from the headers at which byte of the file the body of the last response (after
  /// redirections) begins.
  void header(std::string_view line) {
    constexpr std::string_view kName = "content-range: bytes ";
    if (line.starts_with("HTTP/")) begins_at_ = 0;
    if (line.size() < kName.size()) return;
    for (std::size_t i = 0; i < kName.size(); ++i)
      if (std::tolower(static_cast<unsigned char>(line[i])) != kName[i]) return;
    std::from_chars(line.data() + kName.size(), line.data() + line.size(), begins_at_);
  }

  bool body(std::string_view bytes) {
    try {
      if (!started_ && !start()) return false;
      if (part_.size() + bytes.size() > wanted_.size_in_bytes)
        return refuse(Kind::Refused, concat("the server sends more than the ",
                                            wanted_.size_in_bytes, " bytes of the official file"));
      part_.append(bytes);
      if (watch_.progress) watch_.progress(part_.size());
      return true;
    } catch (...) {  // exceptions must not pass through C code
      fault_ = std::current_exception();
      return false;
    }
  }

  bool start() {
    long status = 0;
    curl_off_t length = -1;
    curl_easy_getinfo(curl_, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(curl_, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
    if (status != kOk && status != kPartial)
      return refuse(Kind::Refused, concat("the server answers with status ", status));
    const std::uint64_t from = status == kPartial ? begins_at_ : 0;
    if (status == kPartial && from != asked_from_)
      return refuse(Kind::NotThatPart, concat("the server sends the file from byte ", from,
                                              " on, but was asked from byte ", asked_from_));
    const std::uint64_t whole = from + static_cast<std::uint64_t>(length);
    if (length >= 0 && whole != wanted_.size_in_bytes)
      return refuse(Kind::Refused, concat("the server's file has ", whole,
                                          " bytes, the official one ", wanted_.size_in_bytes));
    if (from == 0) part_.clear();
    return started_ = true;
  }

  bool refuse(Kind kind, std::string reason) {
    refusal_ = TransferEnd{kind, std::move(reason)};
    return false;
  }

  const Download& wanted_;
  const DownloadWatch& watch_;
  PartFile& part_;
  std::uint64_t asked_from_;
  CURL* curl_;
  std::uint64_t begins_at_ = 0;
  bool started_ = false;
  std::optional<TransferEnd> refusal_;
  std::exception_ptr fault_;
};

void allow_http_only(CURL* curl) {
#if LIBCURL_VERSION_NUM >= 0x075500
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
#else
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS, long{CURLPROTO_HTTP | CURLPROTO_HTTPS});
  curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS, long{CURLPROTO_HTTP | CURLPROTO_HTTPS});
#endif
}

const char* named_by(const char* variable) {
  const char* const value = std::getenv(variable);
  return value == nullptr || *value == '\0' ? nullptr : value;
}

/// The file with certificates of authorities that the user names, or the first that exists of those
/// of Debian, Fedora, openSUSE and Alpine: libcurl alone knows that of the system it was built on.
const char* file_of_authorities() {
  for (const char* const variable : {"CURL_CA_BUNDLE", "SSL_CERT_FILE"})
    if (const char* const file = named_by(variable)) return file;
  std::error_code none;
  for (const char* const file :
       {"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
        "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"})
    if (std::filesystem::exists(file, none)) return file;
  return nullptr;
}

void trust_authorities(CURL* curl) {
  if (const char* const folder = named_by("SSL_CERT_DIR"))
    curl_easy_setopt(curl, CURLOPT_CAPATH, folder);
  if (const char* const file = file_of_authorities()) curl_easy_setopt(curl, CURLOPT_CAINFO, file);
}

void set_options(CURL* curl, const Download& wanted, const PartFile& part, Receiver& receiver,
                 char* fault) {
  curl_easy_setopt(curl, CURLOPT_URL, wanted.address.c_str());
  allow_http_only(curl);
  trust_authorities(curl);
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(curl, CURLOPT_MAXREDIRS, kRedirections);
  curl_easy_setopt(curl, CURLOPT_FAILONERROR, 1L);
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_USERAGENT, "pipewright/" PIPEWRIGHT_VERSION);
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, kSecondsToConnect);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);  // bytes per second
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, static_cast<long>(wanted.patience_in_seconds));
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, fault);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, &Receiver::on_progress);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &receiver);
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, &Receiver::on_header);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, &receiver);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, &Receiver::on_body);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &receiver);
  // A plain range, because CURLOPT_RESUME_FROM fails if a server sends the whole file instead.
  if (part.size() > 0) curl_easy_setopt(curl, CURLOPT_RANGE, concat(part.size(), "-").c_str());
}

Kind kind_of(CURLcode code) {
  switch (code) {
    case CURLE_PARTIAL_FILE:
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM: return Kind::Lost;
    case CURLE_UNSUPPORTED_PROTOCOL:  // after a redirection
    case CURLE_TOO_MANY_REDIRECTS: return Kind::Refused;
    default: return Kind::NoServer;
  }
}

TransferEnd end_of(CURLcode code, CURL* curl, const Download& wanted, const PartFile& part,
                   const std::string& fault) {
  long status = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  if (code == CURLE_ABORTED_BY_CALLBACK) return {Kind::Interrupted, {}};
  if (code == CURLE_HTTP_RETURNED_ERROR && status == kNoSuchRange && part.size() > 0)
    return {Kind::NotThatPart, concat("the server has nothing from byte ", part.size(), " on")};
  if (code == CURLE_HTTP_RETURNED_ERROR)
    return {Kind::Refused, concat("the server answers with status ", status,
                                  status == 404 ? " (there is no such file)" : "")};
  if (code == CURLE_OPERATION_TIMEDOUT && part.size() > 0)
    return {Kind::Lost, concat("nothing arrived for ", wanted.patience_in_seconds, " s")};
  if (code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE)
    return {kind_of(code), concat(fault, "; SSL_CERT_FILE names a file of other certificates")};
  if (code != CURLE_OK) return {kind_of(code), fault.empty() ? curl_easy_strerror(code) : fault};
  if (part.size() < wanted.size_in_bytes)
    return {Kind::Lost, "the server ended the transfer early"};
  return {Kind::Complete, {}};
}

}  // namespace

TransferEnd transfer(const Download& wanted, const DownloadWatch& watch, PartFile& part) {
  static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);
  const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> curl(curl_easy_init(),
                                                                 &curl_easy_cleanup);
  if (ready != CURLE_OK || curl == nullptr) return {Kind::Refused, "libcurl cannot be started"};
  Receiver receiver(wanted, watch, part, curl.get());
  std::array<char, CURL_ERROR_SIZE> fault{};
  set_options(curl.get(), wanted, part, receiver, fault.data());
  const CURLcode code = curl_easy_perform(curl.get());
  if (receiver.fault()) std::rethrow_exception(receiver.fault());
  if (receiver.refusal()) return *receiver.refusal();
  return end_of(code, curl.get(), wanted, part, fault.data());
}

}  // namespace pipewright
