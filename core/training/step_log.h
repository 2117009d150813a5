/// The rows of steps.csv as they come: a file in the checkpoints' folder that only grows, so that
/// steps once written need no memory. It may have more rows than the last checkpoint knows, or half
/// a row after a kill: whoever goes on cuts it to what that checkpoint says. steps.csv itself is a
/// copy of the whole rows and never holds half a file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace pipewright {

/// How much of the file belongs to a checkpoint.
struct StepLogPart {
  std::string name;  ///< "steps-000000.csv"; "": no steps are kept
  std::int64_t bytes = 0;
  std::string checksum;  ///< CRC-32 of these bytes, 8 hex digits
};

/// "epoch,minibatch,loss,loss_2": columns of auxiliary losses are named after their stage.
std::string steps_header(const std::vector<int>& auxiliary);

/// Throws Error{Data} naming the file if it does not begin with that part.
void check_step_log(const std::filesystem::path& folder, const StepLogPart& part);

/// Used by one process at a time. All functions throw Error{Data}.
class StepLog {
 public:
  /// Begins a file, over one that is there; `minibatches`: trained before its first row.
  static StepLog begin(const std::filesystem::path& folder, std::int64_t minibatches,
                       const std::vector<int>& auxiliary);
  /// Goes on behind a part that check_step_log() has found right. With other columns than then it
  /// is a new file with the old rows, whose auxiliary losses are left empty: they were other
  /// stages'.
  static StepLog go_on(const std::filesystem::path& folder, const StepLogPart& part,
                       std::int64_t minibatches, const std::vector<int>& auxiliary);
  StepLog(StepLog&& other) noexcept;
  StepLog& operator=(StepLog&& other) noexcept;
  ~StepLog();

  /// A row of 17 significant digits for each mini-batch from number `first` on: losses[m][0] is its
  /// loss, the others auxiliary ones; NaN is an empty field. All in one call.
  void append(const std::vector<std::vector<double>>& losses, std::int64_t first,
              std::int64_t minibatches_per_epoch);
  /// Makes the rows outlive a power cut.
  void sync() const;
  /// What is in it now.
  StepLogPart part() const;
  /// Writes the rows as a file of their own, atomically.
  void copy_to(const std::filesystem::path& path) const;
  const std::filesystem::path& path() const { return path_; }

 private:
  StepLog(std::filesystem::path path, int flags);
  void write(std::string_view text);
  [[noreturn]] void fail(std::string_view what) const;

  std::filesystem::path path_;
  int descriptor_ = -1;
  std::int64_t bytes_ = 0;
  std::uint32_t crc_ = 0;
};

}  // namespace pipewright
