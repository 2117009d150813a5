// SPDX-License-Identifier: Apache-2.0
#include "core/fetch/sources.h"

#include <algorithm>

#include "core/base/text.h"

namespace pipewright {
namespace {

/// Completes files that lie in one folder of a server with their addresses.
std::vector<SourceFile> files_below(const std::string& address, std::vector<SourceFile> files) {
  for (SourceFile& file : files) file.address = address + file.name;
  return files;
}

/// The sources in the order of their names. Those without files need an account, have files of
/// another form, or publish no checksum.
std::vector<Source> built_in() {
  return {
      {.dataset = "cifar10",
       .title = "CIFAR-10",
       .home = "https://www.cs.toronto.edu/~kriz/cifar.html",
       .folder = "~/data/cifar-10-batches-bin",
       .files = {{"cifar-10-binary.tar.gz",
                  "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz", 170'052'171,
                  "c32a1d4ab5d03f1284b67883e8d87530"}}},
      {.dataset = "cifar100",
       .title = "CIFAR-100",
       .home = "https://www.cs.toronto.edu/~kriz/cifar.html",
       .folder = "~/data/cifar-100-binary",
       .files = {{"cifar-100-binary.tar.gz",
                  "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz", 168'513'733,
                  "03b5dce01913d631647c71ecec9e9cb8"}}},
      {.dataset = "cola",
       .title = "CoLA of GLUE: train.tsv and dev.tsv",
       .home = "https://gluebenchmark.com/tasks",
       .folder = "~/data/glue_data/CoLA"},
      {.dataset = "fashion_mnist",
       .title = "Fashion-MNIST",
       .home = "https://github.com/zalandoresearch/fashion-mnist",
       .folder = "~/data/fashion-mnist",
       .files = files_below(
           "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
           {{"train-images-idx3-ubyte.gz", "", 26'421'880, "8d4fb7e6c68d591d4c3dfef9ec88bf0d"},
            {"train-labels-idx1-ubyte.gz", "", 29'515, "25c81989df183df01b3e8a0aad5dffbe"},
            {"t10k-images-idx3-ubyte.gz", "", 4'422'102, "bef4ecab320f06d8554ea6380940ec79"},
            {"t10k-labels-idx1-ubyte.gz", "", 5'148, "bb300cfdad3c16e7a12a480ee83cd310"}})},
      // The archive lies beside the folder that it unpacks to.
      {.dataset = "food101",
       .title = "Food-101",
       .home = "https://data.vision.ee.ethz.ch/cvl/datasets_extra/food-101/",
       .folder = "~/data",
       .files = {{"food-101.tar.gz", "http://data.vision.ee.ethz.ch/cvl/food-101.tar.gz",
                  4'996'278'331, "85eeb15f3717b99a5da872d97d918f87"}},
       .unpack = "tar xzf food-101.tar.gz"},
      {.dataset = "imagenet_folder",
       .title = "ImageNet: asks for an account, and that its terms be accepted",
       .home = "https://image-net.org",
       .folder = "~/data/imagenet"},
      {.dataset = "imdb",
       .title = "Large Movie Review Dataset",
       .home = "https://ai.stanford.edu/~amaas/data/sentiment/",
       .folder = "~/data/aclImdb",
       .files = {{"aclImdb_v1.tar.gz",
                  "https://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz", 84'125'825,
                  "7c2ac02c03563afcf9b574c7e56c153a"}}},
      // The authors' own page no longer serves the files. This copy is the one that torchvision
      // uses.
      {.dataset = "mnist",
       .title = "MNIST",
       .home = "http://yann.lecun.com/exdb/mnist/",
       .folder = "~/data/mnist",
       .files = files_below(
           "https://ossci-datasets.s3.amazonaws.com/mnist/",
           {{"train-images-idx3-ubyte.gz", "", 9'912'422, "f68b3c2dcbeaaa9fbdd348bbdeb94873"},
            {"train-labels-idx1-ubyte.gz", "", 28'881, "d53e105ee54ea40749a09fcbcd1e9432"},
            {"t10k-images-idx3-ubyte.gz", "", 1'648'877, "9fb629c4189551a2d022fa330f9573f3"},
            {"t10k-labels-idx1-ubyte.gz", "", 4'542, "ec29112dd5afa0611ce80d1b7f02629c"}})},
      {.dataset = "rte",
       .title = "RTE of GLUE: train.tsv and dev.tsv",
       .home = "https://gluebenchmark.com/tasks",
       .folder = "~/data/glue_data/RTE"},
      // The address names a commit, so its files never change.
      {.dataset = "text",
       .title = "Tiny Shakespeare",
       .home = "https://github.com/karpathy/char-rnn",
       .folder = "~/data/text",
       .files = {{"input.txt",
                  "https://raw.githubusercontent.com/karpathy/char-rnn/"
                  "6f9487a6fe5b420b7ca9afb0d7c078e37c1d1b4e/data/tinyshakespeare/input.txt",
                  1'115'394, "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"}}},
      {.dataset = "tiny_imagenet",
       .title = "Tiny-ImageNet",
       .home = "http://cs231n.stanford.edu",
       .folder = "~/data/tiny-imagenet-200",
       .files = {{"tiny-imagenet-200.zip", "http://cs231n.stanford.edu/tiny-imagenet-200.zip",
                  248'100'043, "90528d7ca1a48142e341f4ef8d21d0de"}}},
      // Task 1, English and German, with the test set of 2016. The address names a commit, so its
      // files never change.
      {.dataset = "translation",
       .title = "Multi30k, task 1",
       .home = "https://github.com/multi30k/dataset",
       .folder = "~/data/multi30k",
       .files =
           files_below("https://raw.githubusercontent.com/multi30k/dataset/"
                       "a3d2e0d26b56f3846f66a952536ffed4e401d05a/data/",
                       {{"task1/raw/train.en.gz", "", 568'929,
                         "d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f"},
                        {"task1/raw/train.de.gz", "", 637'044,
                         "726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6"},
                        {"task1/raw/val.en.gz", "", 21'650,
                         "14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28"},
                        {"task1/raw/val.de.gz", "", 24'681,
                         "f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a"},
                        {"task1/raw/test_2016_flickr.en.gz", "", 21'077,
                         "611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9"},
                        {"task1/raw/test_2016_flickr.de.gz", "", 22'890,
                         "9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8"}})}};
}

std::vector<Source>& all_sources() {
  static std::vector<Source> all = built_in();
  return all;
}

}  // namespace

const std::vector<Source>& sources() {
  return all_sources();
}

const Source* find_source(const std::string& dataset) {
  const auto found = std::ranges::find(all_sources(), dataset, &Source::dataset);
  return found == all_sources().end() ? nullptr : &*found;
}

bool add_source(Source source) {
  all_sources().push_back(std::move(source));
  std::ranges::sort(all_sources(), {}, &Source::dataset);
  return true;
}

std::string fetch_advice(const std::string& dataset) {
  const Source* source = find_source(dataset);
  if (source == nullptr || source->files.empty()) return {};
  return concat(", or PIPEWRIGHT_DATA to the folder of all data sets; `pipewright fetch ", dataset,
                "` downloads ", source->title);
}

}  // namespace pipewright
