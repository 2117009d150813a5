// SPDX-License-Identifier: Apache-2.0
// Writes the processor seconds of each test into the file $PIPEWRIGHT_CASE_TIMES, for ../tiers.py.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>

namespace pipewright::test {
namespace {

/// Seconds of a processor that this process and its finished children have had, in all threads.
double processor_seconds() {
  double seconds = 0;
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage used{};
    ::getrusage(who, &used);
    for (const timeval& time : {used.ru_utime, used.ru_stime})
      seconds += static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  }
  return seconds;
}

class CaseTimes final : public testing::EmptyTestEventListener {
 public:
  explicit CaseTimes(const char* file) : file_(std::fopen(file, "we")) {}
  CaseTimes(const CaseTimes&) = delete;
  CaseTimes& operator=(const CaseTimes&) = delete;
  ~CaseTimes() override {
    if (file_ != nullptr) std::fclose(file_);
  }

 private:
  void OnTestStart(const testing::TestInfo&) override { began_ = processor_seconds(); }
  void OnTestEnd(const testing::TestInfo& test) override {
    if (file_ == nullptr) return;
    std::fprintf(file_, "%s.%s,%.3f\n", test.test_suite_name(), test.name(),
                 processor_seconds() - began_);
    std::fflush(file_);  // a later test may end the process
  }

  std::FILE* file_;
  double began_ = 0;
};

/// Before main, which is GoogleTest's.
[[maybe_unused]] const bool listening_to_times = [] {
  if (const char* file = std::getenv("PIPEWRIGHT_CASE_TIMES"))
    testing::UnitTest::GetInstance()->listeners().Append(new CaseTimes(file));
  return true;
}();

}  // namespace
}  // namespace pipewright::test
