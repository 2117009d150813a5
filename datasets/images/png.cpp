// SPDX-License-Identifier: Apache-2.0
#include "datasets/images/png.h"

#include <png.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdio>
#include <cstring>

#include "core/base/error_at.h"

namespace pipewright {
namespace {

/// libpng reports an error through a function that must not return; ours jumps back to the member
/// function of PngDecoder that called libpng, so those functions have no locals with a destructor.
class PngDecoder {
 public:
  explicit PngDecoder(std::string_view bytes) : rest_(bytes) {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, jump_back, keep_quiet);
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
    PIPEWRIGHT_CHECK(info_ != nullptr, "libpng has another version, or no memory");
  }
  ~PngDecoder() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngDecoder(const PngDecoder&) = delete;
  PngDecoder& operator=(const PngDecoder&) = delete;

  /// Reads everything before the pixels.
  bool read_header() {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_set_read_fn(png_, this, hand_over);
    // Metadata is passed over: libpng would ask for the memory that a chunk of it states.
    png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
    png_read_info(png_, info_);
    return true;
  }

  /// Writes 3 bytes per pixel.
  bool read_pixels(std::uint8_t* out) {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_set_expand(png_);  // palettes; 1, 2 and 4 bits; transparent colours
    png_set_strip_16(png_);
    png_set_strip_alpha(png_);
    png_set_gray_to_rgb(png_);
    const int passes = png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    const std::size_t row = png_get_rowbytes(png_, info_);
    if (row != 3 * static_cast<std::size_t>(width())) png_error(png_, "rows of unknown form");
    for (int pass = 0; pass < passes; ++pass)
      for (std::int64_t y = 0; y < height(); ++y)
        png_read_row(png_, out + static_cast<std::size_t>(y) * row, nullptr);
    png_read_end(png_, nullptr);
    return true;
  }

  std::int64_t height() const { return png_get_image_height(png_, info_); }
  std::int64_t width() const { return png_get_image_width(png_, info_); }
  /// The most pixels that a file of so many bytes can have: deflate packs at most 1,032 bytes into
  /// one, and a byte holds at most 8 pixels.
  std::uint64_t most_pixels(std::size_t bytes) const {
    const auto bits = std::uint64_t{png_get_channels(png_, info_)} *
                      std::uint64_t{png_get_bit_depth(png_, info_)};
    return 1032 * std::uint64_t{bytes} * 8 / std::max<std::uint64_t>(bits, 1);
  }
  const char* message() const { return message_.data(); }

 private:
  [[noreturn]] static void jump_back(png_structp png, png_const_charp message) {
    auto* self = static_cast<PngDecoder*>(png_get_error_ptr(png));
    std::snprintf(self->message_.data(), self->message_.size(), "%s", message);
    png_longjmp(png, 1);
  }
  static void keep_quiet(png_structp, png_const_charp) {}
  static void hand_over(png_structp png, png_bytep out, std::size_t count) {
    auto* self = static_cast<PngDecoder*>(png_get_io_ptr(png));
    if (count > self->rest_.size()) png_error(png, "the file ends too early");
    std::memcpy(out, self->rest_.data(), count);
    self->rest_.remove_prefix(count);
  }

  std::string_view rest_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  std::array<char, 200> message_{};
};

}  // namespace

Image decode_png(std::string_view bytes, const std::string& where) {
  PngDecoder decoder(bytes);
  const auto damaged = [&] {
    throw data_error(where, "damaged PNG image: ", std::string_view(decoder.message()));
  };
  if (!decoder.read_header()) damaged();
  check_holds(decoder.height(), decoder.width(), decoder.most_pixels(bytes.size()), where);
  Image image = black_image(decoder.height(), decoder.width(), where);
  if (!decoder.read_pixels(image.pixels.data())) damaged();
  return image;
}

}  // namespace pipewright
