// SPDX-License-Identifier: Apache-2.0
// Sources of files so small and plain that fetch_test.py can serve them, linked into a second build
// of the program: nobody can make up a file with the checksum of a published one.
#include "core/fetch/sources.h"

namespace pipewright {
namespace {

// Port 9 of this machine: nobody listens.
[[maybe_unused]] const bool kSmall =
    add_source({.dataset = "small",
                .title = "One file",
                .home = "http://home.example",
                .folder = "~/data/small",
                .files = {{"small.bin", "http://127.0.0.1:9/small.bin", 200'000,
                           "40094b811bffafa4f165177b2427c8ce"}},
                .unpack = "tar xzf small.bin"});

[[maybe_unused]] const bool kPair = add_source(
    {.dataset = "pair",
     .title = "Two files, one in a folder",
     .home = "http://home.example",
     .folder = "~/data/pair",
     .files = {{"one.txt", "http://127.0.0.1:9/one.txt", 4'000, "9b154d6b8f66b2bdc95b4240115c5483"},
               {"deep/two.txt", "http://127.0.0.1:9/deep/two.txt", 2'000,
                "95ba893bbf668f43d91c27de5dacb26d628b9887453b3d38e8e518075f3adfab"}}});

}  // namespace
}  // namespace pipewright
