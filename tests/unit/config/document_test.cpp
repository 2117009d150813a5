// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>

#include "core/config/merge.h"
#include "core/config/options.h"
#include "core/system/file.h"
#include "tests/unit/config/error_text.h"

namespace pipewright {
namespace {

namespace fs = std::filesystem;

class LoadDocument : public testing::Test {
 protected:
  LoadDocument()
      : folder_(fs::path(testing::TempDir()) / concat("pipewright_document_", getpid())) {
    fs::remove_all(folder_);
  }
  ~LoadDocument() override { fs::remove_all(folder_); }

  void write(const std::string& name, const std::string& text) { write_file(folder_ / name, text); }
  Value load(const std::string& name, const std::string& profile = "",
             const std::vector<std::string>& sets = {}) {
    return load_document(folder_ / name, profile, sets);
  }
  /// The complaint, with the folder left out.
  std::string refusal(const std::string& name, const std::string& profile = "",
                      const std::vector<std::string>& sets = {}) {
    std::string text = error_text([&] { load(name, profile, sets); });
    const std::string prefix = folder_.string() + "/";
    for (std::size_t at; (at = text.find(prefix)) != std::string::npos;)
      text.erase(at, prefix.size());
    return text;
  }

  fs::path folder_;
};

TEST_F(LoadDocument, IsNamedAfterItsFile) {
  write("vgg.yaml", "model: {name: mlp}\n");
  EXPECT_EQ(to_json(load("vgg.yaml")), R"({"name":"vgg","model":{"name":"mlp"}})");
  write("named.yaml", "name: other\n");
  EXPECT_EQ(to_json(load("named.yaml")), R"({"name":"other"})");
}

TEST_F(LoadDocument, MergesWhatItExtends) {
  write("base.yaml", "model: {name: mlp, classes: 10}\ntrain: {epochs: 3, seed: 1}\n");
  write("sub/middle.yaml", "extends: ../base.yaml\ntrain: {seed: 2}\n");
  write("sub/leaf.yaml", "extends: middle.yaml\nname: leaf\ntrain: {epochs: 5}\n");
  EXPECT_EQ(to_json(load("sub/leaf.yaml")),
            R"({"model":{"name":"mlp","classes":10},"train":{"epochs":5,"seed":2},"name":"leaf"})");
}

TEST_F(LoadDocument, ASweepOfTheFileThatItExtendsDoesNotReplaceItsValuesInSilence) {
  write("swept.yaml",
        "a: 1\nb: {c: 1, d: 1}\nsweep: {points: [{a: 2, b: {c: 2}}, {a: 3, b: {c: 3}}]}\n");
  const auto refusal = [this](const std::string& text, const std::string& profile = "",
                              const std::vector<std::string>& sets = {}) {
    write("child.yaml", "extends: swept.yaml\n" + text);
    const std::string said =
        error_text([&] { expand_sweep_alone(load("child.yaml", profile, sets)); });
    const std::size_t at = said.find("child.yaml");
    return at == std::string::npos ? said : said.substr(at);
  };
  EXPECT_EQ(
      refusal("a: 5\n"),
      "child.yaml:2:1: a has no effect, because the sweep gives every run a value of its own; "
      "change it in the sweep");
  EXPECT_EQ(refusal("b: {c: 5}\n"),
            "child.yaml:2:5: b.c has no effect, because the sweep gives every run a value of its "
            "own; change it in the sweep");
  EXPECT_EQ(refusal("profiles: {p: {a: 5}}\n", "p"),
            "child.yaml:2:16: a has no effect, because the sweep gives every run a value of its "
            "own; change it in the sweep");
  EXPECT_EQ(refusal("b: {d: 5}\n"), "no error");
  EXPECT_EQ(refusal("b: {}\n"), "no error");
  EXPECT_EQ(refusal("sweep: {points: [{a: 4}, {b.c: 3}]}\na: 5\n"), "no error");
  EXPECT_EQ(refusal("a: 5\n", "", {"sweep.points=[{a: 1}, {a: 2}]"}), "no error");
  EXPECT_EQ(refusal("sweep: {grid: {b.d: [1, 2]}}\n"), "no error");
}

TEST_F(LoadDocument, PathsBeginWhereTheyAreNamed) {
  write("base.yaml", "dataset: {name: x, root: data, file: in}\n");
  write("sub/leaf.yaml", "extends: ../base.yaml\ndataset: {file: in}\n");
  const Value document = load("sub/leaf.yaml", "", {"dataset.third=in"});
  Problems problems;
  Options options(document.find("dataset"), "dataset", problems);
  EXPECT_EQ(options.path("root", "", ""), folder_ / "data");
  EXPECT_EQ(options.path("file", "", ""), folder_ / "sub/in");
  EXPECT_EQ(options.path("third", "", ""), fs::current_path() / "in");
}

TEST_F(LoadDocument, RefusesCirclesAndFilesThatAreNotThere) {
  write("a.yaml", "extends: b.yaml\n");
  write("b.yaml", "extends: ./a.yaml\n");
  write("self.yaml", "extends: self.yaml\n");
  write("lost.yaml", "extends: nowhere.yaml\n");
  write("list.yaml", "extends: [a.yaml]\n");
  EXPECT_EQ(refusal("a.yaml"),
            "b.yaml:1:10: extends './a.yaml' closes a circle: a.yaml extends this file");
  EXPECT_NE(refusal("self.yaml").find("closes a circle"), std::string::npos);
  EXPECT_EQ(refusal("lost.yaml"),
            "lost.yaml:1:10: extends 'nowhere.yaml', but there is no file nowhere.yaml");
  EXPECT_EQ(refusal("list.yaml"),
            "list.yaml:1:10: extends is a list; expected the path of one file");
}

TEST_F(LoadDocument, RefusesWhatIsNoMapping) {
  write("empty.yaml", "# nothing\n");
  write("text.yaml", "model:mlp\n");
  EXPECT_EQ(refusal("empty.yaml"),
            "empty.yaml:1:1: the file is empty; expected options such as 'model: {name: mlp}'");
  EXPECT_EQ(
      refusal("text.yaml"),
      "text.yaml:1:1: the file is no experiment; expected options such as 'model: {name: mlp}' "
      "(with a space after ':')");
}

TEST_F(LoadDocument, ShowsNothingOfAFileThatIsNoExperiment) {
  const std::string refused = "; expected options such as 'model: {name: mlp}'";
  for (const std::string secret :
       {"root:$6$salt$hash:19000:0:99999:7:::\nbin:*:1:0:::::\n", "secret: {key: 010}\n",
        "name: compose\nsecret: 1\nsecret: 2\n", "[secret, yes]\n", "'secret\n", "\tsecret: 1\n"}) {
    write("secret", secret);
    write("e.yaml", "extends: secret\n");
    EXPECT_EQ(refusal("e.yaml"), "secret:1:1: the file is no experiment" + refused) << secret;
  }
  write("shadow", "root:$6$salt$hash:19000:0:99999:7:::\n");
  EXPECT_EQ(refusal("shadow"), "shadow:1:1: no key of the file is an option" + refused);
  write("keys", "secret: {key: 1}\n");
  EXPECT_EQ(refusal("keys"), "keys:1:1: no key of the file is an option" + refused);
}

TEST_F(LoadDocument, ShowsTheFaultsOfAnExperimentThatIsExtended) {
  write("base.yaml", "# ours\n\"model\" : {name: mlp}\ntrain: {epochs: 010}\n");
  write("e.yaml", "extends: base.yaml\n");
  EXPECT_EQ(refusal("e.yaml").substr(0, 22), "base.yaml:3:17: '010' ");
}

TEST_F(LoadDocument, ExtendsAnExperimentInAnyStyleOfYaml) {
  for (const std::string text :
       {"# ours\n{model: {name: mlp}}\n", "--- {model: {name: mlp}}\n", "{? model : {name: mlp}}\n",
        "{name: 'a}b', model: {name: mlp}}\n"}) {
    write("base.yaml", text);
    write("e.yaml", "extends: base.yaml\nname: e\n");
    const std::string made = to_json(load("e.yaml"));
    EXPECT_NE(made.find(R"("model":{"name":"mlp"})"), std::string::npos) << text << made;
    EXPECT_NE(made.find(R"("name":"e")"), std::string::npos) << text << made;
  }
}

TEST_F(LoadDocument, AppliesTheProfileThenTheSets) {
  write("e.yaml",
        "train: {epochs: 100, seed: 1}\n"
        "profiles:\n"
        "  laptop: {loader.limit_train: 2000, train: {epochs: 3}}\n");
  EXPECT_EQ(to_json(load("e.yaml")), R"({"name":"e","train":{"epochs":100,"seed":1}})");
  EXPECT_EQ(to_json(load("e.yaml", "laptop")),
            R"({"name":"e","train":{"epochs":3,"seed":1},"loader":{"limit_train":2000}})");
  EXPECT_EQ(to_json(load("e.yaml", "laptop", {"train.epochs=1", "train.epochs = 2"})),
            R"({"name":"e","train":{"epochs":2,"seed":1},"loader":{"limit_train":2000}})");
}

TEST_F(LoadDocument, ProfilesOfBaseFilesComeFirst) {
  write("base.yaml", "profiles:\n  small: {train.epochs: 3, a: 1}\n  tiny: {a: 2}\n");
  write("e.yaml", "extends: base.yaml\nname: e\nprofiles:\n  small: {train: {epochs: 5}}\n");
  EXPECT_EQ(to_json(load("e.yaml", "small")), R"({"name":"e","train":{"epochs":5},"a":1})");
  EXPECT_EQ(to_json(load("e.yaml", "tiny")), R"({"name":"e","a":2})");
}

TEST_F(LoadDocument, RefusesUnknownProfiles) {
  write("e.yaml", "profiles: {laptop: {}, cluster: {}}\n");
  write("none.yaml", "train: {}\n");
  EXPECT_EQ(refusal("e.yaml", "labtop"),
            "--profile: unknown profile 'labtop'; did you mean 'laptop'?");
  EXPECT_EQ(refusal("e.yaml", "zzzzzz"),
            "--profile: unknown profile 'zzzzzz'; known: cluster, laptop");
  EXPECT_EQ(refusal("none.yaml", "laptop"),
            "--profile: unknown profile 'laptop'; the file has none");
}

TEST_F(LoadDocument, ReportsAllWrongSetsTogether) {
  write("e.yaml", "train: 1\n");
  EXPECT_EQ(refusal("e.yaml", "", {"b=yes", "c", "train.d=1", "extends=x.yaml", "=3"}),
            "--set: the argument is 'c'; expected KEY=VALUE, such as train.epochs=3\n"
            "--set: the argument is '=3'; expected KEY=VALUE, such as train.epochs=3\n"
            "--set b: 'yes' is not how a flag is written; write true, or \"yes\" in quotes for the "
            "text\n"
            "--set: 'extends' cannot be set here; write it at the top level of an experiment file\n"
            "--set: 'train.d' cannot be set: train is 1, not a mapping");
}

TEST_F(LoadDocument, KeepsSweepAndTable) {
  write("e.yaml", "sweep: {grid: {a: [1]}}\ntable: {rows: a}\n");
  const Value document = load("e.yaml");
  EXPECT_NE(document.find("sweep"), nullptr);
  EXPECT_NE(document.find("table"), nullptr);
}

/// Of the parts that are another one's, and of keys that are given again, nothing is lost.
TEST_F(LoadDocument, NamesOptionsThatASectionOfTheSameNameDrops) {
  write(
      "grand.yaml",
      "model: {name: mlp, widths: [2, 3]}\ndataset: {train: 8, test: 4}\nloader: {batch_size: 4}\n"
      "pipeline: {compression: {name: top_k, fraction: 0.5, backward: {name: none}}}\n"
      "profiles: {b: {train.epochs: 1}}\n");
  write("base.yaml",
        "extends: grand.yaml\nmodel: {name: mlp, activation: relu}\nloader: {shuffle: false}\n"
        "pipeline: {compression: {name: top_k, backward: {name: uniform}}}\n");
  write("file.yaml",
        "extends: base.yaml\nprofiles: {a: {train.epochs: 2}}\n"
        "dataset: {name: synthetic, test: 2}\n");
  const Composition composition = composition_of(folder_ / "file.yaml");
  EXPECT_EQ(composition.profiles, (std::vector<std::string>{"a", "b"}));
  std::vector<std::string> dropped;
  for (const DroppedOption& each : composition.dropped)
    dropped.push_back(concat(each.key, " ", to_json(each.value), " by ",
                             fs::path(each.by.file).filename().string(), ":", each.by.line));
  EXPECT_EQ(dropped, (std::vector<std::string>{"model.widths [2,3] by base.yaml:2",
                                               "pipeline.compression.fraction 0.5 by base.yaml:4",
                                               "dataset.train 8 by file.yaml:3"}));
}

}  // namespace
}  // namespace pipewright
