// SPDX-License-Identifier: Apache-2.0
#include <ATen/ATen.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <set>

#include "core/system/file.h"
#include "core/tensor_files/safetensors.h"
#include "tests/unit/datasets/fixtures.h"

namespace pipewright {
namespace {

class TensorsDataset : public ::testing::Test {
 protected:
  TensorsDataset() {
    tensors_["train.x"] = at::arange(24, at::kDouble).reshape({4, 2, 3});
    tensors_["train.y"] = at::tensor({2, 0, 1, 2}, at::kLong);
    tensors_["test.x"] = -at::arange(12, at::kDouble).reshape({2, 2, 3});
    tensors_["test.y"] = at::tensor({0, 6}, at::kLong);
  }
  std::unique_ptr<Dataset> dataset() {
    return make_dataset(
        "tensors", concat("{file: '", (folder_ / "data.safetensors").string(), "', ", more_, "}"));
  }
  std::unique_ptr<Dataset> opened() {
    TensorFile file;
    for (const auto& [name, tensor] : tensors_) file.tensors.emplace_back(name, tensor);
    write_safetensors(folder_ / "data.safetensors", file);
    auto data = dataset();
    data->open(request_);
    return data;
  }
  std::string refusal_with(const std::string& name, const at::Tensor& tensor) {
    const at::Tensor before = tensors_[name];
    tensors_[name] = tensor;
    const std::string error = error_of([this] { opened(); });
    EXPECT_TRUE(contains(error, "data.safetensors"));
    EXPECT_TRUE(contains(error, "'" + name + "'"));
    tensors_[name] = before;
    return error;
  }

  fixtures::TemporaryFolder folder_;
  std::map<std::string, at::Tensor> tensors_;
  std::string more_;  // options
  DatasetRequest request_;
};

TEST_F(TensorsDataset, GivesTheSamplesAskedForInTheFilesPrecision) {
  const auto data = opened();
  EXPECT_EQ(data->size(Split::Train), 4);
  EXPECT_EQ(data->size(Split::Test), 2);
  EXPECT_EQ(data->sample_shape(), (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(data->classes(), 7) << "the highest label of either split, and one";
  const std::vector<std::int64_t> indices{3, 1, 3};
  const Batch batch = data->batch(Split::Train, indices, nullptr);
  EXPECT_EQ(batch.x[0].scalar_type(), at::kDouble);
  EXPECT_TRUE(
      batch.x[0].equal(tensors_["train.x"].index_select(0, at::tensor({3, 1, 3}, at::kLong))));
  EXPECT_EQ(values_of<std::int64_t>(batch.y), (std::vector<std::int64_t>{2, 0, 2}));
  EXPECT_TRUE(data->batch(Split::Test, std::vector<std::int64_t>{1}, nullptr)
                  .x[0]
                  .equal(tensors_["test.x"].slice(0, 1)));
}

TEST_F(TensorsDataset, TakesSamplesOfOneNumberAndOtherPrecisions) {
  tensors_["train.x"] = at::arange(4, at::kFloat);
  tensors_["test.x"] = at::arange(2, at::kHalf);
  const auto data = opened();
  EXPECT_TRUE(data->sample_shape().empty());
  const std::vector<std::int64_t> indices{1, 0};
  EXPECT_EQ(data->batch(Split::Train, indices, nullptr).x[0].scalar_type(), at::kFloat);
  EXPECT_EQ(data->batch(Split::Test, indices, nullptr).x[0].scalar_type(), at::kHalf);
}

TEST_F(TensorsDataset, TakesLabelsOfEveryIntegerType) {
  for (const at::ScalarType type : {at::kInt, at::kShort, at::kChar, at::kByte}) {
    tensors_["train.y"] = at::tensor({2, 0, 1, 2}, type);
    const std::vector<std::int64_t> indices{0, 1, 2, 3};
    const Batch batch = opened()->batch(Split::Train, indices, nullptr);
    EXPECT_EQ(values_of<std::int64_t>(batch.y), (std::vector<std::int64_t>{2, 0, 1, 2}));
  }
}

TEST_F(TensorsDataset, NamesTheTensorAndRecordAtFault) {
  EXPECT_TRUE(contains(refusal_with("train.y", at::tensor({2, 0, -1, 2}, at::kInt)), "record 2"));
  EXPECT_TRUE(
      contains(refusal_with("train.y", at::tensor({2, 0, 1}, at::kLong)), "[3], must be [4]"));
  EXPECT_TRUE(contains(refusal_with("train.y", at::zeros({4, 1}, at::kLong)), "must be [4]"));
  EXPECT_TRUE(contains(refusal_with("train.y", at::zeros({4})), "must be integers"));
  EXPECT_TRUE(contains(refusal_with("test.x", at::zeros({2, 2, 3}, at::kInt)), "must be floating"));
  EXPECT_TRUE(contains(refusal_with("test.x", at::zeros({2, 3, 2})), "[3, 2], train.x of [2, 3]"));
  EXPECT_TRUE(contains(refusal_with("train.x", at::zeros({0, 2, 3})), "must be [samples, ...]"));
  EXPECT_TRUE(contains(refusal_with("train.x", at::zeros({})), "must be [samples, ...]"));
  for (const std::string name : {"train.x", "train.y", "test.x", "test.y"}) {
    const at::Tensor before = tensors_.extract(name).mapped();
    EXPECT_TRUE(contains(error_of([this] { opened(); }), "no tensor '" + name + "'"));
    tensors_[name] = before;
  }
}

TEST_F(TensorsDataset, TakesTokensWithALabelOrATargetForEach) {
  tensors_["train.x"] = at::arange(12, at::kLong).reshape({4, 3});
  tensors_["test.x"] = at::tensor({3, 1, 14, 0, 0, 7}, at::kLong).reshape({2, 3});
  const auto labelled = opened();
  EXPECT_EQ(labelled->task(), Task::Classify);
  EXPECT_EQ(labelled->vocabulary(), 15) << "the highest token of either split, and one";
  EXPECT_EQ(labelled->sample_shape(), (std::vector<std::int64_t>{3}));
  tensors_["train.y"] = at::arange(12, at::kInt).reshape({4, 3});
  tensors_["train.y"][1][2] = kNoTarget;
  tensors_["test.y"] = at::zeros({2, 3}, at::kLong);
  const auto continued = opened();
  EXPECT_EQ(continued->task(), Task::Continue);
  EXPECT_EQ(continued->classes(), 12);
  const Batch batch = continued->batch(Split::Train, std::vector<std::int64_t>{1, 0}, nullptr);
  EXPECT_EQ(values_of<std::int64_t>(batch.x[0]), (std::vector<std::int64_t>{3, 4, 5, 0, 1, 2}));
  EXPECT_EQ(values_of<std::int64_t>(batch.y),
            (std::vector<std::int64_t>{3, 4, kNoTarget, 0, 1, 2}));
}

TEST_F(TensorsDataset, SaysHowManySamplesHaveNoTargetAndRefusesNone) {
  tensors_["train.x"] = at::arange(12, at::kLong).reshape({4, 3});
  tensors_["test.x"] = at::zeros({2, 3}, at::kLong);
  tensors_["train.y"] = at::arange(12, at::kLong).reshape({4, 3});
  tensors_["test.y"] = at::zeros({2, 3}, at::kLong);
  tensors_["train.y"][1][2] = kNoTarget;
  EXPECT_TRUE(opened()->remarks().empty());
  tensors_["train.y"][1].fill_(kNoTarget);
  const std::vector<std::string> remarks = opened()->remarks();
  ASSERT_EQ(remarks.size(), 1u);
  EXPECT_TRUE(contains(remarks[0],
                       "1 of 4 samples has no target; a mean over samples counts a "
                       "loss of 0 for each"))
      << remarks[0];
  tensors_["test.y"].fill_(kNoTarget);
  EXPECT_TRUE(contains(error_of([this] { opened(); }), "has no target: all are -100"));
}

TEST_F(TensorsDataset, RefusesTokensThatAreNone) {
  tensors_["train.x"] = at::zeros({4, 3}, at::kLong);
  tensors_["test.x"] = at::zeros({2, 3}, at::kLong);
  at::Tensor negative = at::zeros({4, 3}, at::kLong);
  negative[2][1] = -1;
  EXPECT_TRUE(contains(refusal_with("train.x", negative), "record 2"));
  EXPECT_TRUE(contains(refusal_with("train.x", at::zeros({4, 2, 3}, at::kLong)),
                       "must be [samples, tokens]"));
  EXPECT_TRUE(contains(refusal_with("test.x", at::zeros({2, 3})), "if and only if train.x is"));
  EXPECT_TRUE(
      contains(refusal_with("train.y", at::zeros({4, 2}, at::kLong)), "or one for each token"));
  EXPECT_TRUE(
      contains(refusal_with("test.y", at::zeros({2, 3}, at::kLong)), "if and only if train.y has"));
  EXPECT_TRUE(contains(refusal_with("train.y", at::full({4, 3}, -1, at::kLong)), "record 0"));
}

TEST_F(TensorsDataset, TakesSmallIntegersAsNumbers) {
  for (const at::ScalarType type : {at::kByte, at::kChar, at::kShort, at::kBool}) {
    tensors_["train.x"] = at::tensor({0, 1, 1, 0}, at::kLong).to(type);
    tensors_["test.x"] = at::tensor({1, 0}, at::kLong).to(type);
    const Batch batch = opened()->batch(Split::Train, std::vector<std::int64_t>{2, 0}, nullptr);
    EXPECT_EQ(values_of<float>(batch.x[0]), (std::vector<float>{1, 0}));
  }
}

TEST_F(TensorsDataset, HasRealTargetsForALossThatComparesWithThem) {
  request_ = {.targets = Task::Regress};
  tensors_["train.y"] = at::tensor({0.5, -1.0, 2.0, 3.5}, at::kDouble);
  tensors_["test.y"] = at::tensor({7, 8}, at::kLong);
  const auto data = opened();
  EXPECT_EQ(data->task(), Task::Regress);
  EXPECT_EQ(data->classes(), 1);
  const Batch batch = data->batch(Split::Train, std::vector<std::int64_t>{3, 1}, nullptr);
  EXPECT_EQ(batch.y.sizes(), (std::vector<std::int64_t>{2, 1}));
  EXPECT_EQ(values_of<double>(batch.y), (std::vector<double>{3.5, -1.0}));
  tensors_["train.y"] = at::zeros({4, 3});
  EXPECT_TRUE(
      contains(refusal_with("test.y", at::zeros({2, 2})), "has targets of shape [2] for a sample"));
  tensors_["test.y"] = at::zeros({2, 3});
  EXPECT_EQ(opened()->classes(), 3);
  at::Tensor infinite = at::zeros({4, 3});
  infinite[2][0] = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(contains(refusal_with("train.y", infinite), "record 2 (counted from 0)"));
  EXPECT_TRUE(contains(refusal_with("train.y", at::zeros({3})), "must be [4] or [4, targets]"));
}

TEST_F(TensorsDataset, HasLabelsOfZeroAndOneForALossThatComparesWithThem) {
  request_ = {.targets = Task::Label};
  tensors_["train.y"] = at::tensor({0.0, 1.0, 1.0, 0.0}, at::kDouble);
  tensors_["test.y"] = at::tensor({1, 0}, at::kLong);
  EXPECT_EQ(opened()->task(), Task::Label);
  EXPECT_EQ(opened()->classes(), 1);
  const Batch batch = opened()->batch(Split::Train, std::vector<std::int64_t>{3, 1}, nullptr);
  EXPECT_EQ(values_of<std::uint8_t>(batch.y), (std::vector<std::uint8_t>{0, 1}));
  tensors_["train.y"] = at::ones({4, 3}, at::kBool);
  EXPECT_TRUE(contains(refusal_with("test.y", at::zeros({2, 2})), "train.y has [3]"));
  tensors_["test.y"] = at::zeros({2, 3});
  EXPECT_EQ(opened()->classes(), 3);
  at::Tensor wrong = at::zeros({4, 3});
  wrong[2][1] = 0.5;
  EXPECT_TRUE(contains(refusal_with("train.y", wrong),
                       "record 2 (counted from 0) has the label 0.5; the loss "
                       "binary_cross_entropy takes 0 and 1"));
  EXPECT_TRUE(contains(refusal_with("train.y", at::zeros({3})), "must be [4], [4, labels]"));
}

TEST_F(TensorsDataset, SaysWhatItsSamplesAreBeforeItIsOpened) {
  opened();
  const auto data = dataset();
  const SampleForm form = data->form(Task::Classify);
  EXPECT_EQ(form.shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(form.classes, 7);
  EXPECT_EQ(form.vocabulary, 0);
  EXPECT_EQ(data->form(Task::Regress).classes, 1) << "a real number for each sample";
  std::filesystem::remove(folder_ / "data.safetensors");
  EXPECT_EQ(data->form(Task::Classify).classes, 0);
}

/// A file whose numbers take five terabytes, which no memory holds. On the disk, what was never
/// written takes no room.
TEST_F(TensorsDataset, SaysWhatItsSamplesAreWithoutReadingTheirNumbers) {
  constexpr std::uint64_t kTerabyte = std::uint64_t{1} << 40;
  const std::string header =
      concat(R"({"test.y":{"dtype":"I64","shape":[1],"data_offsets":[0,8]},)",
             R"("train.y":{"dtype":"I64","shape":[4],"data_offsets":[8,40]},)",
             R"("test.x":{"dtype":"F32","shape":[1,16],"data_offsets":[40,104]},)",
             R"("train.x":{"dtype":"F32","shape":[4,16],"data_offsets":[104,360]}})");
  std::string large = header;
  const auto replace = [&](const std::string& old, const std::string& now) {
    large.replace(large.find(old), old.size(), now);
  };
  // 2^38 numbers of a sample, 4 bytes each.
  replace("[1,16]", "[1,274877906944]");
  replace("[40,104]", concat("[40,", 40 + kTerabyte, "]"));
  replace("[4,16]", "[4,274877906944]");
  replace("[104,360]", concat("[", 40 + kTerabyte, ",", 40 + kTerabyte + 4 * kTerabyte, "]"));
  const std::uint64_t length = large.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  bytes += large;
  const std::int64_t labels[] = {5, 1, 0, 6, 2};
  bytes.append(reinterpret_cast<const char*>(labels), sizeof labels);
  write_file(folder_ / "data.safetensors", bytes);
  std::filesystem::resize_file(folder_ / "data.safetensors",
                               8 + length + 40 + kTerabyte + 4 * kTerabyte);
  const SampleForm form = dataset()->form(Task::Classify);
  EXPECT_EQ(form.shape, (std::vector<std::int64_t>{274877906944}));
  EXPECT_EQ(form.classes, 7) << "the largest label, and one";
  EXPECT_EQ(form.vocabulary, 0);
}

/// A model that takes tokens, truth values and one number of a sample by name.
class NamedInputs : public TensorsDataset {
 protected:
  NamedInputs() {
    tensors_["train.words"] = at::arange(8, at::kLong).reshape({4, 2});
    tensors_["test.words"] = at::zeros({2, 2}, at::kLong);
    tensors_["train.keep"] = at::tensor({1, 0, 0, 1, 1, 1, 0, 0}).reshape({4, 2}).to(at::kBool);
    tensors_["test.keep"] = at::ones({2, 2}, at::kBool);
    tensors_["train.scale"] = at::tensor({1, 2, 3, 4}, at::kByte);
    tensors_["test.scale"] = at::tensor({5.5, 6.5}, at::kDouble);
    request_.model_inputs = {{.name = "words", .shape = {2}, .type = at::kLong, .vocabulary = 9},
                             {.name = "keep", .shape = {2}, .type = at::kBool},
                             {.name = "scale", .shape = {}, .type = at::kFloat}};
  }
};

TEST_F(NamedInputs, AreGivenInTheModelsOrderRowByRow) {
  const auto data = opened();
  EXPECT_EQ(data->input_names(), (std::vector<std::string>{"words", "keep", "scale"}));
  EXPECT_EQ(data->sample_shape(), (std::vector<std::int64_t>{2})) << "of the first";
  const Batch batch = data->batch(Split::Train, std::vector<std::int64_t>{3, 0}, nullptr);
  ASSERT_EQ(batch.x.size(), 3U);
  EXPECT_EQ(values_of<std::int64_t>(batch.x[0]), (std::vector<std::int64_t>{6, 7, 0, 1}));
  EXPECT_TRUE(batch.x[1].equal(at::tensor({0, 0, 1, 0}).reshape({2, 2}).to(at::kBool)));
  EXPECT_EQ(values_of<float>(batch.x[2]), (std::vector<float>{4, 1}));
  EXPECT_EQ(values_of<std::int64_t>(batch.y), (std::vector<std::int64_t>{2, 2}));
  EXPECT_EQ(data->batch(Split::Test, std::vector<std::int64_t>{1}, nullptr).x[2].item<double>(),
            6.5);
}

TEST_F(NamedInputs, ThatDoNotFitTheModelAreRefusedByName) {
  EXPECT_TRUE(contains(refusal_with("test.keep", at::ones({2, 3}, at::kBool)),
                       "has shape [2, 3], must be [2, 2]"));
  EXPECT_TRUE(contains(refusal_with("train.keep", at::ones({4, 2}, at::kLong)),
                       "has type Long, the model's 'keep' is of truth values"));
  EXPECT_TRUE(contains(refusal_with("train.scale", at::ones({4}, at::kInt)),
                       "has type Int, the model's 'scale' is floating"));
  EXPECT_TRUE(contains(refusal_with("train.scale", at::ones({3})), "must be [4]"));
  request_.model_inputs[1] = {.name = "keep", .shape = {2}, .type = at::kLong, .vocabulary = 1};
  EXPECT_TRUE(contains(error_of([this] { opened(); }),
                       "record 0 (counted from 0) has the token 1, the model takes 0 to 0"));
  tensors_.erase("test.scale");
  EXPECT_TRUE(contains(error_of([this] { opened(); }),
                       "'test.scale' in it; train.words, train.keep, train.scale, train.y, "
                       "test.words, test.keep, test.scale and test.y are needed, or words, keep, "
                       "scale and y to be split"));
}

/// A file of one part: sample i is the number i, its class i mod 3.
class SplitTensors : public TensorsDataset {
 protected:
  SplitTensors() {
    tensors_ = {{"x", at::arange(20, at::kDouble)}, {"y", at::arange(20, at::kLong).remainder(3)}};
  }
  std::vector<double> samples_of(const Dataset& data, Split split) {
    const Batch batch = data.batch(split, fixtures::first_indices(data.size(split)), nullptr);
    for (std::int64_t i = 0; i < data.size(split); ++i)
      EXPECT_EQ(batch.y[i].item<std::int64_t>(), std::lround(batch.x[0][i].item<double>()) % 3);
    return values_of<double>(batch.x[0]);
  }
};

TEST_F(SplitTensors, AreDrawnByTheSeedOnceEachInTheOrderOfTheFile) {
  std::set<std::vector<double>> drawn;
  for (const std::string seed : {"0", "1", "2"}) {
    more_ = "split: 0.25, seed: " + seed;
    const auto data = opened();
    const std::vector<double> train = samples_of(*data, Split::Train),
                              test = samples_of(*data, Split::Test);
    EXPECT_EQ(test.size(), 5U);
    EXPECT_TRUE(std::ranges::is_sorted(train) && std::ranges::is_sorted(test));
    std::vector<double> all;
    std::ranges::merge(train, test, std::back_inserter(all));
    EXPECT_EQ(all, values_of<double>(tensors_["x"]));
    EXPECT_EQ(samples_of(*opened(), Split::Test), test) << "the same again";
    drawn.insert(test);
  }
  EXPECT_EQ(drawn.size(), 3U);
}

TEST_F(SplitTensors, HaveAShareOrANumber) {
  for (const auto& [split, test] :
       {std::pair{"0.5", 10}, {"7", 7}, {"0.01", 1}, {"19", 19}, {"0.33", 7}}) {
    more_ = concat("split: ", split);
    EXPECT_EQ(opened()->size(Split::Test), test) << split;
    EXPECT_EQ(opened()->size(Split::Train), 20 - test) << split;
  }
}

TEST_F(SplitTensors, SayWhatIsWrong) {
  const auto refusal = [&](const std::string& more) {
    more_ = more;
    return error_of([this] { opened(); }, ErrorKind::Experiment);
  };
  EXPECT_TRUE(contains(refusal(""), "data.safetensors has one part; expected dataset.split"));
  EXPECT_TRUE(contains(refusal("split: 20"), "takes 20 samples of the 20"));
  EXPECT_TRUE(contains(refusal("split: 1e300"), "none are left to train on"));
  EXPECT_TRUE(contains(refusal("split: 2.5"), "a share below 1, or a whole number"));
  EXPECT_TRUE(contains(refusal("split: -1"), "at least 0"));
  EXPECT_TRUE(contains(refusal("split: 5, test_file: t.npz"), "beside dataset.test_file"));
  EXPECT_TRUE(
      contains(refusal("split: 5, target: [2]"), "dataset.target is for .csv and .tsv files"));
  EXPECT_TRUE(contains(refusal("split: 5, target_file: y.npy"), "is for .npy files"));
  tensors_ = {{"train.x", at::zeros({2})}, {"train.y", at::zeros({2}, at::kLong)}};
  EXPECT_TRUE(contains(refusal("split: 5"), "for files of one part"));
}

TEST_F(TensorsDataset, ReadsClassesAndRealNumbersFromText) {
  const std::filesystem::path path = folder_ / "t.csv";
  const auto table = [&](const std::string& text) {
    fixtures::put(path, text);
    return make_dataset("tensors", "{file: '" + path.string() + "', split: 1}");
  };
  const auto classes = table("1,0\n2,1\n3,4\n");
  classes->open({});
  EXPECT_EQ(classes->classes(), 5);
  EXPECT_EQ(classes->sample_shape(), (std::vector<std::int64_t>{1}));
  const auto real = table("1,0\n2,1\n3,4\n");
  real->open({.targets = Task::Regress});
  EXPECT_EQ(real->task(), Task::Regress);
  EXPECT_TRUE(contains(error_of([&] { table("1,0\n2,1.5\n3,4\n")->open({}); }),
                       "record 1 (counted from 0) has the target 1.5, which is no class"));
  EXPECT_TRUE(
      contains(error_of([&] { table("1,0\n2,-1\n3,4\n")->open({}); }), "negative label -1"));
}

TEST_F(TensorsDataset, NumbersClassesOfTextByTheNamesOfTheTrainingPart) {
  const std::filesystem::path train = folder_ / "t.csv", test = folder_ / "u.csv";
  const auto data = [&](const std::string& text) {
    fixtures::put(train, "a,y\n1,poor\n2,good\n3,fair\n");
    fixtures::put(test, text);
    auto made = make_dataset(
        "tensors", "{file: '" + train.string() + "', test_file: '" + test.string() + "'}");
    made->open({});
    return made;
  };
  const auto read = data("a,y\n4,poor\n");
  EXPECT_EQ(read->classes(), 3);
  const std::vector<std::int64_t> all{0, 1, 2};
  EXPECT_EQ(values_of<std::int64_t>(read->batch(Split::Train, all, nullptr).y),
            (std::vector<std::int64_t>{2, 1, 0}));
  EXPECT_EQ(values_of<std::int64_t>(read->batch(Split::Test, std::span(all).first(1), nullptr).y),
            (std::vector<std::int64_t>{2}));
  EXPECT_TRUE(contains(error_of([&] { data("a,y\n4,bad\n"); }),
                       "row 0 (counted from 0, behind a line of names) has the target 'bad'"));
  EXPECT_TRUE(contains(error_of([&] { data("a,y\n4,1\n"); }), "has targets that are numbers"));
  EXPECT_TRUE(data("a,y\n4,poor\n")->remarks().empty()) << "texts are numbered from 0";
}

/// By its numbers alone no one can tell that a test file has its columns in another order.
TEST_F(TensorsDataset, FindsTheColumnsOfATestFileByTheNamesOfTheTrainingFile) {
  const std::filesystem::path train = folder_ / "t.csv", test = folder_ / "u.csv";
  fixtures::put(train, ",width,height,kind\n0,1,2,0\n1,3,4,1\n");
  const auto opened_with = [&](const std::string& text, const std::string& more = "") {
    fixtures::put(test, text);
    auto data = make_dataset("tensors", concat("{file: '", train.string(), "', test_file: '",
                                               test.string(), "'", more, "}"));
    data->open({});
    return data;
  };
  const std::vector<std::int64_t> first{0};
  for (const char* more : {"", ", columns: [2, 3], target: 4", ", columns: [width, height]"}) {
    const auto data = opened_with("kind,colour,height,width\n1,red,6,5\n", more);
    const Batch batch = data->batch(Split::Test, first, nullptr);
    EXPECT_EQ(values_of<double>(batch.x[0]), (std::vector<double>{5, 6})) << more;
    EXPECT_EQ(values_of<std::int64_t>(batch.y), (std::vector<std::int64_t>{1})) << more;
  }
  const auto refusal = [&](const std::string& text) {
    return error_of([&] { opened_with(text); });
  };
  EXPECT_TRUE(contains(refusal("kind,size\n1,5\n"),
                       "u.csv: lacks the columns 'width' and 'height' of t.csv; expected"));
  EXPECT_TRUE(contains(refusal("kind,width,Height\n1,5,6\n"),
                       "u.csv: lacks the column 'height' of t.csv; expected"));
  EXPECT_TRUE(
      contains(refusal("0,5,6,1\n"), "u.csv: the first line names no columns, that of t.csv does"));
  EXPECT_TRUE(contains(refusal("width,width,height,kind\n1,5,6,1\n"),
                       "u.csv: has several columns 'width'"));
}

/// Names that do not tell columns apart choose them by their place, where the other file has them.
TEST_F(TensorsDataset, FindsColumnsThatShareANameByTheirPlace) {
  const std::filesystem::path train = folder_ / "t.csv", test = folder_ / "u.csv";
  fixtures::put(train, "a,a,y\n1,2,0\n3,4,1\n");
  const auto opened_with = [&](const std::string& text) {
    fixtures::put(test, text);
    auto data = make_dataset(
        "tensors", concat("{file: '", train.string(), "', test_file: '", test.string(), "'}"));
    data->open({});
    return data;
  };
  const std::vector<std::int64_t> first{0};
  const Batch batch = opened_with("a,a,y\n5,6,1\n")->batch(Split::Test, first, nullptr);
  EXPECT_EQ(values_of<double>(batch.x[0]), (std::vector<double>{5, 6}));
  EXPECT_TRUE(contains(error_of([&] { opened_with("a,y,a\n5,1,6\n"); }),
                       "u.csv: lacks the column 'a' of t.csv"));
}

/// Without names there is the place only.
TEST_F(TensorsDataset, FindsColumnsByTheirPlaceWithoutNames) {
  const std::filesystem::path train = folder_ / "t.csv", test = folder_ / "u.csv";
  fixtures::put(train, "1,2,0\n3,4,1\n");
  fixtures::put(test, "a,b,y\n5,6,1\n");
  auto data = make_dataset(
      "tensors", concat("{file: '", train.string(), "', test_file: '", test.string(), "'}"));
  data->open({});
  const std::vector<std::int64_t> first{0};
  EXPECT_EQ(values_of<double>(data->batch(Split::Test, first, nullptr).x[0]),
            (std::vector<double>{5, 6}));
}

TEST_F(TensorsDataset, TakesTwoTextsForOneLabel) {
  const std::filesystem::path path = folder_ / "t.csv";
  const auto opened_with = [&](const std::string& text) {
    fixtures::put(path, text);
    auto data = make_dataset("tensors", "{file: '" + path.string() + "', split: 1}");
    data->open({.targets = Task::Label});
    return data;
  };
  const auto data = opened_with("a,y\n1,yes\n2,no\n3,yes\n4,no\n");
  EXPECT_EQ(data->task(), Task::Label);
  ASSERT_EQ(data->remarks().size(), 1u);
  EXPECT_TRUE(contains(data->remarks()[0], "the label 1 is 'yes'"));
  const auto truth = opened_with("a,y\n1,True\n2,False\n3,True\n");
  EXPECT_TRUE(contains(truth->remarks()[0], "the label 1 is 'True'"));
  EXPECT_TRUE(contains(error_of([&] { opened_with("a,y\n1,yes\n2,no\n3,maybe\n"); }),
                       "has 3 texts; the loss binary_cross_entropy takes one label of two"));
}

TEST_F(TensorsDataset, RemarksThatAFirstLineOfNumbersIsASample) {
  const std::filesystem::path path = folder_ / "t.csv";
  const auto remarks = [&](const std::string& text, const std::string& more = "") {
    fixtures::put(path, text);
    auto data =
        make_dataset("tensors", concat("{file: '", path.string(), "', split: 1", more, "}"));
    data->open({.targets = Task::Regress});
    return data->remarks();
  };
  const auto said = remarks("2019,2020,2021\n1,2,3\n4,5,9\n");
  ASSERT_EQ(said.size(), 1u);
  EXPECT_TRUE(contains(said[0], "t.csv: the first line, 2019, 2020, 2021, is a sample"));
  EXPECT_TRUE(remarks("2019,2020,2021\n1,2,3\n4,5,9\n", ", header: names").empty());
  EXPECT_TRUE(remarks("2019,2020,2021\n1,2,3\n4,5,9\n", ", header: none").empty());
  EXPECT_TRUE(remarks("2019,2021,2020\n1,2,3\n4,5,9\n").empty());
}

TEST_F(TensorsDataset, NamesFileSampleAndColumnOfANumberThatIsNotFinite) {
  for (const char* name : {"train.x", "test.x"}) {
    const at::Tensor right = tensors_[name];
    at::Tensor wrong = at::zeros({right.size(0), 2, 3});
    wrong[1][1][2] = std::numeric_limits<double>::quiet_NaN();
    EXPECT_TRUE(contains(refusal_with(name, wrong),
                         "record 1 (counted from 0) has nan at [1, 2] (from 0, too)"));
    wrong = at::zeros({right.size(0), 4}, at::kHalf);
    wrong[0][3] = std::numeric_limits<double>::infinity();
    EXPECT_TRUE(contains(refusal_with(name, wrong),
                         "record 0 (counted from 0) has inf in column 3 (from 0, too)"));
  }
}

TEST_F(TensorsDataset, RemarksThatLabelsDoNotCountFromZero) {
  EXPECT_TRUE(opened()->remarks().empty());
  tensors_["train.y"] = at::tensor({1, 2, 3, 1}, at::kLong);
  tensors_["test.y"] = at::tensor({2, 1}, at::kLong);
  const std::vector<std::string> remarks = opened()->remarks();
  ASSERT_EQ(remarks.size(), 1u);
  EXPECT_TRUE(contains(remarks[0], "train.y of"));
  EXPECT_TRUE(contains(remarks[0], "labels are 1 to 3, and classes count from 0"));
  tensors_["test.y"] = at::tensor({2, 0}, at::kLong);
  EXPECT_TRUE(opened()->remarks().empty()) << "the test samples count from 0";
}

TEST_F(TensorsDataset, RefusesNumbersThatAreInfiniteInTheModelsType) {
  const auto large = [](double value) {
    at::Tensor made = at::zeros({4, 2, 3}, at::kDouble);
    made[2][1][0] = value;
    return made;
  };
  EXPECT_TRUE(contains(refusal_with("train.x", large(1e39)),
                       "record 2 (counted from 0) has 1e+39 at [1, 0] (from 0, too), which is too "
                       "large for Float; expected finite numbers"));
  request_.model_numbers = at::kHalf;
  EXPECT_TRUE(contains(refusal_with("train.x", large(1e5)), "too large for Half"));
  request_ = {.model_numbers = at::kDouble};
  tensors_["train.x"] = large(1e39);
  EXPECT_NO_THROW(opened());
  request_ = {.targets = Task::Regress};
  tensors_["train.x"] = large(1);
  tensors_["test.y"] = at::zeros({2}, at::kDouble);
  EXPECT_TRUE(contains(refusal_with("train.y", at::tensor({0.0, 1.0, -1e39, 0.0}, at::kDouble)),
                       "record 2 (counted from 0) has -1e+39 in column 0"));
}

TEST_F(TensorsDataset, ReadsFilesByTheirEndingAndNamesThoseThatItKnows) {
  const auto opened_as = [&](const std::string& name, const std::string& text,
                             const std::string& more = "") {
    const std::filesystem::path path = folder_ / name;
    fixtures::put(path, text);
    auto made = make_dataset("tensors", "{file: '" + path.string() + "', split: 1" + more + "}");
    made->open({});
    return made;
  };
  EXPECT_EQ(opened_as("t.tsv", "1\t0\n2\t1\n")->classes(), 2);
  EXPECT_EQ(opened_as("T.CSV", "1,0\n2,1\n")->classes(), 2);
  EXPECT_EQ(opened_as("t.tsv", "1;0\n2;1\n", ", separator: semicolon")->classes(), 2);
  EXPECT_TRUE(
      contains(error_of([&] { opened_as("t.txt", "1,0\n2,1\n3,1\n"); }),
               "ends in '.txt', and it is no safetensors file; expected .safetensors, .npz, "
               ".npy, .csv or .tsv"));
}

TEST_F(TensorsDataset, NeedsAFile) {
  EXPECT_TRUE(contains(error_of([] { make_dataset("tensors", "{}"); }, ErrorKind::Experiment),
                       "dataset.file"));
  const auto absent = make_dataset("tensors", "{file: '" + folder_.text() + "/absent'}");
  EXPECT_TRUE(contains(error_of([&] { absent->open({}); }), "absent"));
}

}  // namespace
}  // namespace pipewright
