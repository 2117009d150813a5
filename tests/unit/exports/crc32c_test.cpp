// SPDX-License-Identifier: Apache-2.0
// CRC-32C against published vectors: the check value of the catalogue of CRCs, and RFC 3720,
// appendix B.4.
#include "core/exports/event_records.h"

#include <gtest/gtest.h>

#include <string>

namespace pipewright {
namespace {

TEST(Crc32c, GivesThePublishedValues) {
  EXPECT_EQ(crc32c(""), 0U);
  EXPECT_EQ(crc32c("123456789"), 0xE3069283U);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAU);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62A8AB43U);
  std::string rising, falling;
  for (int i = 0; i < 32; ++i) {
    rising += static_cast<char>(i);
    falling += static_cast<char>(31 - i);
  }
  EXPECT_EQ(crc32c(rising), 0x46DD794EU);
  EXPECT_EQ(crc32c(falling), 0x113FDB5CU);
}

TEST(Crc32c, IsMaskedByARotationAndAConstant) {
  // 0xE3069283 rotated right by 15 bits is 0x2507C60D.
  EXPECT_EQ(masked_crc32c("123456789"), 0x2507C60DU + 0xA282EAD8U);
}

}  // namespace
}  // namespace pipewright
