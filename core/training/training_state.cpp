// SPDX-License-Identifier: Apache-2.0
#include "core/training/training_state.h"

#include "core/base/error_at.h"
#include "core/tensor_files/safetensors.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

constexpr std::int64_t kEpochColumns = 6, kTrafficColumns = 7, kEvaluationColumns = 6;

at::Tensor table(const std::vector<double>& values, std::int64_t rows) {
  const std::int64_t columns = rows > 0 ? static_cast<std::int64_t>(values.size()) / rows : 0;
  return at::tensor(values, at::kDouble).view({rows, columns});
}

/// The tensor of that name with so many rows, and columns if `columns` > 0. Throws if there is
/// none.
at::Tensor table_in(const TensorFile& file, const std::string& name, std::int64_t rows,
                    std::int64_t columns, const std::filesystem::path& path) {
  const at::Tensor* const found = file.find(name);
  if (found == nullptr || found->scalar_type() != at::kDouble || found->dim() != 2 ||
      found->size(0) != rows || (rows > 0 && columns > 0 && found->size(1) != columns))
    throw data_error(path, "has no table '", name, "' of ", rows, " rows");
  return *found;
}

std::vector<EdgeTraffic> read_traffic(const TensorFile& file, const std::filesystem::path& path) {
  const at::Tensor* const found = file.find("traffic");
  const std::int64_t rows = found != nullptr && found->dim() == 2 ? found->size(0) : 0;
  const at::Tensor table = table_in(file, "traffic", rows, kTrafficColumns, path);
  std::vector<EdgeTraffic> traffic;
  const double* v = table.const_data_ptr<double>();
  for (std::int64_t row = 0; row < rows; ++row, v += kTrafficColumns)
    traffic.push_back(
        {static_cast<int>(v[0]), static_cast<int>(v[1]), v[2], v[3], v[4], v[5], v[6]});
  return traffic;
}

/// The evaluations, which checkpoints of earlier programs do not have.
std::vector<EvaluationRow> read_evaluations(const TensorFile& file, std::size_t metrics,
                                            const std::filesystem::path& path) {
  const at::Tensor* const found = file.find("evaluations");
  const std::int64_t rows = found != nullptr && found->dim() == 2 ? found->size(0) : 0;
  std::vector<EvaluationRow> evaluations;
  if (rows == 0) return evaluations;
  const auto columns = kEvaluationColumns + static_cast<std::int64_t>(metrics);
  const at::Tensor table = table_in(file, "evaluations", rows, columns, path);
  const double* v = table.const_data_ptr<double>();
  for (std::int64_t row = 0; row < rows; ++row, v += columns)
    evaluations.push_back({static_cast<std::int64_t>(v[0]),
                           v[1],
                           v[2],
                           v[3],
                           v[4],
                           v[5],
                           {v + kEvaluationColumns, v + columns}});
  return evaluations;
}

}  // namespace

void write_training_state(const std::filesystem::path& path, const TrainingState& state,
                          Syncs syncs) {
  std::vector<double> epochs, evaluations, traffic;
  for (const EvaluationRow& row : state.evaluations) {
    evaluations.insert(evaluations.end(),
                       {static_cast<double>(row.minibatches), row.samples, row.tokens, row.seconds,
                        row.test_loss, row.test_accuracy});
    evaluations.insert(evaluations.end(), row.metrics.begin(), row.metrics.end());
  }
  for (const EdgeTraffic& t : state.traffic)
    traffic.insert(traffic.end(),
                   {static_cast<double>(t.from), static_cast<double>(t.to), t.messages,
                    t.value_bytes, t.sent_bytes, t.encode_seconds, t.decode_seconds});
  for (const EpochRow& row : state.epochs) {
    epochs.insert(epochs.end(), {row.train_loss, row.test_loss, row.test_accuracy, row.lr,
                                 row.seconds, row.samples_per_second});
    epochs.insert(epochs.end(), row.metrics.begin(), row.metrics.end());
  }
  write_safetensors(
      path,
      {.tensors = {{"epochs", table(epochs, std::ssize(state.epochs))},
                   {"evaluations", table(evaluations, std::ssize(state.evaluations))},
                   {"open_losses", table(state.open_losses, std::ssize(state.open_losses))},
                   {"traffic", table(traffic, std::ssize(state.traffic))},
                   {"open_seconds", table({state.open_seconds}, 1)}}},
      syncs);
}

TrainingState read_training_state(const std::filesystem::path& path, std::int64_t minibatches,
                                  int minibatches_per_epoch, std::size_t metrics) {
  const TensorFile file = read_safetensors(path);
  const std::int64_t whole = minibatches / minibatches_per_epoch;
  const auto columns = kEpochColumns + static_cast<std::int64_t>(metrics);
  const at::Tensor epochs = table_in(file, "epochs", whole, columns, path);
  const std::int64_t open = minibatches % minibatches_per_epoch;
  const at::Tensor losses = table_in(file, "open_losses", open, 1, path);
  TrainingState state{.minibatches = minibatches,
                      .open_seconds = table_in(file, "open_seconds", 1, 1, path).item<double>()};
  const double* v = epochs.const_data_ptr<double>();
  for (int epoch = 0; epoch < whole; ++epoch, v += columns)
    state.epochs.push_back(
        {epoch, v[0], v[1], v[2], v[3], v[4], v[5], {v + kEpochColumns, v + columns}});
  const double* const loss = losses.const_data_ptr<double>();
  state.open_losses.assign(loss, loss + open);
  state.evaluations = read_evaluations(file, metrics, path);
  state.traffic = read_traffic(file, path);
  return state;
}

}  // namespace pipewright
