// SPDX-License-Identifier: Apache-2.0
// The normal distribution against its tables.
#include "core/base/normal_distribution.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "tests/unit/tolerances.h"

namespace pipewright::test {
namespace {

struct Entry {
  double p, x;
};
/// Computed with 60 digits, of the p that a double holds.
constexpr Entry kTable[] = {
    {0.75, 0.6744897501960817432},    {0.9, 1.2815515655446005935},
    {0.975, 1.9599639845400538556},   {0.99, 2.3263478740408407676},
    {0.999, 3.0902323061678132778},   {0.02425, -1.9729610513118848376},
    {0.1, -1.2815515655446004353},    {0.001, -3.0902323061678135354},
    {1e-9, -5.9978070150076868614},   {1e-20, -9.2623400897984075796},
    {1e-100, -21.273453560965324294}, {1e-300, -37.047096299361199237},
    {0.15865525393145705141, -1},     {0.0227501319481792072, -2},
};

TEST(NormalDistribution, HasTheTablesQuantiles) {
  for (const Entry& entry : kTable)
    EXPECT_NEAR(normal_quantile(entry.p), entry.x, tolerance::normal_quantile_of(entry.x))
        << "p " << entry.p;
}

TEST(NormalDistribution, HasTheTablesProbabilities) {
  for (const Entry& entry : kTable)
    EXPECT_NEAR(normal_cdf(entry.x), entry.p, tolerance::normal_cdf_of(entry.x) * entry.p)
        << "x " << entry.x;
}

TEST(NormalDistribution, HasQuantilesThatItsDistributionFunctionTakesBack) {
  for (int i = 1; i < 1000; ++i) {
    const double p = i / 1000.0;
    EXPECT_NEAR(normal_cdf(normal_quantile(p)), p, tolerance::kFewOperations) << "p " << p;
  }
}

TEST(NormalDistribution, IsSymmetric) {
  EXPECT_NEAR(normal_quantile(0.5), 0, 2 * tolerance::kUnit64);
  for (const double p : {0.25, 0.125, 0x1p-20, 0x1p-50})  // of which 1 − p is exact
    EXPECT_EQ(normal_quantile(1 - p), -normal_quantile(p)) << "p " << p;
}

TEST(NormalDistribution, EndsAtInfinity) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(normal_quantile(0), -infinity);
  EXPECT_EQ(normal_quantile(1), infinity);
  EXPECT_TRUE(std::isfinite(normal_quantile(std::numeric_limits<double>::denorm_min())));
  EXPECT_THROW(normal_quantile(-0.1), Error);
  EXPECT_THROW(normal_quantile(1.1), Error);
  EXPECT_THROW(normal_quantile(std::numeric_limits<double>::quiet_NaN()), Error);
}

}  // namespace
}  // namespace pipewright::test
