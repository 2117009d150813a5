// SPDX-License-Identifier: Apache-2.0
#include "datasets/images/jpeg.h"

#include <array>
#include <csetjmp>
#include <cstddef>
#include <cstdio>  // before jpeglib.h, which needs it

#include <jerror.h>
#include <jpeglib.h>

#include "core/base/error_at.h"

namespace pipewright {
namespace {

/// Limits the passes that a small file can demand over a large image.
constexpr int kMostScans = 500;

/// libjpeg reports an error through a function that must not return; ours jumps back to the member
/// function of JpegDecoder that called libjpeg, so those functions have no locals with a
/// destructor.
struct Failure {
  jpeg_error_mgr callbacks;  // must be first: libjpeg passes its address
  std::jmp_buf back;
  std::array<char, JMSG_LENGTH_MAX> message;
};

[[noreturn]] void jump_back(j_common_ptr codec) {
  auto* failure = reinterpret_cast<Failure*>(codec->err);
  codec->err->format_message(codec, failure->message.data());
  std::longjmp(failure->back, 1);
}

void keep_quiet(j_common_ptr, int /*level*/) {}

boolean no_more_bytes(j_decompress_ptr codec) {
  codec->err->msg_code = JERR_INPUT_EOF;
  jump_back(reinterpret_cast<j_common_ptr>(codec));
}

void count_scans(j_common_ptr codec) {
  if (reinterpret_cast<j_decompress_ptr>(codec)->input_scan_number <= kMostScans) return;
  codec->err->msg_code = JERR_BAD_PROGRESSION;
  jump_back(codec);
}

class JpegDecoder {
 public:
  JpegDecoder() {
    codec_.err = jpeg_std_error(&failure_.callbacks);
    failure_.callbacks.error_exit = jump_back;
    failure_.callbacks.emit_message = keep_quiet;
    progress_.progress_monitor = count_scans;
  }
  ~JpegDecoder() { jpeg_destroy_decompress(&codec_); }
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  /// Reads everything before the pixels and selects the output channels.
  bool read_header(std::string_view bytes) {
    if (setjmp(failure_.back) != 0) return false;
    jpeg_create_decompress(&codec_);
    codec_.progress = &progress_;
    jpeg_mem_src(&codec_, reinterpret_cast<const unsigned char*>(bytes.data()),
                 static_cast<unsigned long>(bytes.size()));
    codec_.src->fill_input_buffer = no_more_bytes;
    jpeg_read_header(&codec_, TRUE);
    if (codec_.num_components == 1) codec_.out_color_space = JCS_GRAYSCALE;
    if (codec_.num_components == 3) codec_.out_color_space = JCS_RGB;
    if (codec_.num_components == 4) codec_.out_color_space = JCS_CMYK;
    return true;
  }

  bool read_pixels(std::uint8_t* out) {
    if (setjmp(failure_.back) != 0) return false;
    jpeg_start_decompress(&codec_);
    const std::size_t row =
        std::size_t{codec_.output_width} * static_cast<std::size_t>(codec_.output_components);
    while (codec_.output_scanline < codec_.output_height) {
      JSAMPROW line = out + codec_.output_scanline * row;
      jpeg_read_scanlines(&codec_, &line, 1);
    }
    return true;
  }

  std::int64_t height() const { return codec_.image_height; }
  std::int64_t width() const { return codec_.image_width; }
  int components() const { return codec_.num_components; }
  /// The most pixels that a file of so many bytes can have: Huffman coding takes at least one bit
  /// for each block of 8 × 8 pixels.
  std::uint64_t most_pixels(std::size_t bytes) const {
    return codec_.arith_code ? kMostPixels : 8 * std::uint64_t{bytes} * 64;
  }
  const char* message() const { return failure_.message.data(); }

 private:
  jpeg_decompress_struct codec_{};
  jpeg_progress_mgr progress_{};
  Failure failure_{};
};

/// The product of two fractions of 255, rounded.
std::uint8_t product(int a, int b) {
  return static_cast<std::uint8_t>((a * b + 127) / 255);
}

void write_rgb(const std::vector<std::uint8_t>& samples, int components, Image& image) {
  std::uint8_t* out = image.pixels.data();
  const auto step = static_cast<std::size_t>(components);
  for (std::size_t i = 0; i < samples.size(); i += step, out += 3)
    for (std::size_t c = 0; c < 3; ++c)
      out[c] = components == 1 ? samples[i] : product(samples[i + c], samples[i + 3]);
}

}  // namespace

Image decode_jpeg(std::string_view bytes, const std::string& where) {
  JpegDecoder decoder;
  const auto fail = [&](const std::string& what) { throw data_error(where, what); };
  const auto damaged = [&] {
    fail(concat("damaged JPEG image: ", std::string_view(decoder.message())));
  };
  if (!decoder.read_header(bytes)) damaged();
  const int components = decoder.components();
  if (components == 2 || components > 4)
    fail(concat("JPEG image of ", components, " components; 1, 3 or 4 can be read"));
  check_holds(decoder.height(), decoder.width(), decoder.most_pixels(bytes.size()), where);
  Image image = black_image(decoder.height(), decoder.width(), where);
  if (components == 3) {
    if (!decoder.read_pixels(image.pixels.data())) damaged();
    return image;
  }
  std::vector<std::uint8_t> samples(image.pixels.size() / 3 * static_cast<std::size_t>(components));
  if (!decoder.read_pixels(samples.data())) damaged();
  write_rgb(samples, components, image);
  return image;
}

}  // namespace pipewright
