// Saved and loaded again, a run goes on with the same bits; what does not fit is refused.
#include "core/experiment/checkpoint.h"

#include <gtest/gtest.h>

#include "core/base/file.h"
#include "core/stage/safetensors.h"
#include "core/stage/torch.h"
#include "tests/unit/experiment/run_folders.h"
#include "tests/unit/runtime/laboratory.h"

namespace pipewright::test {
namespace {

class Checkpoint : public RunFolders {
 protected:
  std::filesystem::path file() const { return root_ / "last.safetensors"; }
  void save(Laboratory& laboratory, const Stages& stages, int epochs = 1) const {
    const Experiment& e = laboratory.experiment;
    save_checkpoint(file(), *e.optimizer, stages[0]->predicts(), stages, e.pipeline.stages, epochs,
                    e.digest);
  }
  int load(Laboratory& laboratory, const Stages& stages, const std::string& digest) const {
    const Experiment& e = laboratory.experiment;
    return load_checkpoint(file(), *e.optimizer, stages[0]->predicts(), stages, e.pipeline.stages,
                           digest);
  }
  /// The error of loading; fails the test without one.
  Error refusal(Laboratory& laboratory, const std::string& digest) const {
    try {
      load(laboratory, laboratory.plan().stages(), digest);
    } catch (const Error& error) {
      return error;
    }
    ADD_FAILURE() << "nothing is refused";
    return Error(ErrorKind::Bug, "");
  }
};

TEST_F(Checkpoint, GoesOnWithTheSameBits) {
  for (const char* changes :
       {"{scheme: {name: pipedream}}", "{scheme: {name: spectrain, velocity: lookahead}}",
        "{scheme: {name: pipeoptim}, optimizer: {name: adam}}", "{optimizer: {name: rmsprop}}",
        "{scheme: {name: spectrain}, optimizer: {name: sgd}}", "{scheme: {name: interlocking}}",
        "{pipeline.replicas: 2, model: {name: cnn, width: 0.125, size: 8, channels: 1, classes: "
        "3}}"}) {
    Laboratory laboratory(changes);
    const Stages whole = laboratory.plan().stages(), resumed = laboratory.plan().stages();
    train(laboratory.plan(), whole, Execution::Serial, nullptr, 0);
    save(laboratory, whole, 1);
    train(laboratory.plan(), whole, Execution::Serial, nullptr, 1);
    EXPECT_EQ(load(laboratory, resumed, laboratory.experiment.digest), 1);
    train(laboratory.plan(), resumed, Execution::Serial, nullptr, 1);
    EXPECT_EQ(difference(whole, resumed), "") << changes;
    for (std::size_t i = 0; i < whole.size(); ++i)
      EXPECT_EQ(resumed[i]->optimizer_state().steps, whole[i]->optimizer_state().steps) << changes;
  }
}

TEST_F(Checkpoint, HasTheSameBytesForTheSameState) {
  Laboratory laboratory("{scheme: {name: pipedream}}");
  const Stages stages = laboratory.plan().stages();
  save(laboratory, stages);
  const std::string once = read_file(file());
  save(laboratory, stages);
  EXPECT_EQ(read_file(file()), once);
}

TEST_F(Checkpoint, OfAnotherExperimentIsRefused) {
  Laboratory laboratory;
  save(laboratory, laboratory.plan().stages());
  const Error error = refusal(laboratory, "0123456789abcdef");
  EXPECT_EQ(error.kind(), ErrorKind::Experiment);
  EXPECT_EQ(error.where(), file().string());
}

TEST_F(Checkpoint, CutOffAnywhereIsRefused) {
  Laboratory laboratory;
  save(laboratory, laboratory.plan().stages());
  const std::string bytes = read_file(file());
  for (const std::size_t length :
       {std::size_t{0}, std::size_t{7}, bytes.size() / 2, bytes.size() - 1}) {
    write_file(file(), std::string_view(bytes).substr(0, length));
    EXPECT_EQ(refusal(laboratory, laboratory.experiment.digest).kind(), ErrorKind::Data) << length;
  }
}

TEST_F(Checkpoint, WithoutATensorOrWithAnotherShapeIsRefused) {
  Laboratory laboratory;
  save(laboratory, laboratory.plan().stages());
  const TensorFile whole = read_safetensors(file());
  for (const char* name : {"1.weight", "optimizer.momentum_buffer.2.bias"}) {
    TensorFile without = whole, other = whole;
    std::erase_if(without.tensors, [&](const auto& each) { return each.first == name; });
    for (auto& [each, tensor] : other.tensors)
      if (each == name) tensor = at::zeros({3});
    for (const TensorFile& file_content : {without, other}) {
      write_safetensors(file(), file_content);
      const Error error = refusal(laboratory, laboratory.experiment.digest);
      EXPECT_EQ(error.kind(), ErrorKind::Data);
      EXPECT_NE(error.message().find(concat("'", name, "'")), std::string::npos) << error.what();
    }
  }
}

TEST_F(Checkpoint, WithoutItsNumbersIsRefused) {
  Laboratory laboratory;
  save(laboratory, laboratory.plan().stages());
  const TensorFile whole = read_safetensors(file());
  for (const char* key : {"epochs", "steps.2"})
    for (const char* value : {"", "-1", "1x"}) {
      TensorFile changed = whole;
      changed.metadata[key] = value;
      write_safetensors(file(), changed);
      EXPECT_EQ(refusal(laboratory, laboratory.experiment.digest).kind(), ErrorKind::Data)
          << key << value;
    }
}

}  // namespace
}  // namespace pipewright::test
