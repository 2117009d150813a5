# SPDX-License-Identifier: Apache-2.0
"""A scheme outside the tree: installed, built and run as the manual says; and what is refused.

Everything starts from the manual's own page, done once, word for word, in a home of its own.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import harness
import pages
import skips
from harness import EXPERIMENT, MLP, SCHEDULE, changed, plain

CXX = os.environ["CXX"]
VERSION = re.search(r'define PIPEWRIGHT_VERSION "(.+)"', (harness.SOURCE_DIR / "core/base/version.h").read_text())[1]
MINOR = ".".join(VERSION.split(".")[:2])
FILES = {block.file: block.text for page in (pages.README, pages.SCHEME) for block in pages.blocks(page) if block.file}
SCHEME, CMAKE = FILES["half_way/half_way.cpp"], FILES["half_way/CMakeLists.txt"]
(COMMANDS,) = (block.text for block in pages.blocks(pages.SCHEME, "sh"))
HALF_WAY = changed(MLP, {"scheme": {"name": "half_way", "part": 0.7}})
TWO = changed(HALF_WAY, {"sweep": {"grid": {"train.seed": [1, 2]}}, "table": {"rows": "train.seed"}})


def environment(home):
    """Nothing in it says where a LibTorch is."""
    told = ("Torch_DIR", "PIPEWRIGHT_PYTHON", "LD_LIBRARY_PATH", "CMAKE_PREFIX_PATH")
    return {name: value for name, value in os.environ.items() if name not in told} | {"HOME": str(home)}


def setUpModule():
    global home, done, plugin
    home = Path(tempfile.mkdtemp(prefix="pipewright-e2e-home-"))
    unittest.addModuleCleanup(shutil.rmtree, home)
    (home / "build").symlink_to(os.environ["PIPEWRIGHT_BUILD_DIR"])
    (home / "half_way").mkdir()
    for name, text in FILES.items():
        (home / name).write_text(text)
    done = shell(COMMANDS)
    plugin = home / "half_way/build/half_way.so"


def shell(commands, folder=None):
    return subprocess.run(
        ["sh", "-e", "-c", commands], cwd=folder or home, env=environment(home), capture_output=True, text=True,
        timeout=3 * harness.SECONDS_LIMIT,  # of several commands
    )


class Installed(harness.EndToEnd):
    def test_the_commands_of_the_manual_do_what_it_says(self):
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        self.assertIn("Predicts a part of the staleness", done.stdout)
        run = harness.Run(home / "runs/first")
        self.assertEqual("done", run.state())
        self.assertIn("half_way", (run.path / "experiment.yaml").read_text())
        self.assertEqual(
            [{"path": str(plugin), "sha256": hashlib.sha256(plugin.read_bytes()).hexdigest()}],
            json.loads((run.path / "run.json").read_text())["plugins"],
        )

    def test_nothing_of_libtorch_has_part_in_the_plugin(self):
        for made in ("CMakeCache.txt", "build.ninja"):
            self.assertNotIn("torch", (plugin.parent / made).read_text().lower())
        needed = shell(f"ldd {plugin}").stdout
        self.assertIn(str(home / "pipewright/lib/libpipewright.so"), needed)
        self.assertNotIn("torch", needed)

    @skips.needs("mpirun")
    def test_what_is_installed_trains_with_processes(self):
        trained = shell("pipewright/bin/pipewright run first.yaml --out runs/mpi --set pipeline.execution=mpi")
        self.assertEqual(0, trained.returncode, trained.stdout + trained.stderr)
        self.assertEqual("done", harness.Run(home / "runs/mpi").state())

    def test_the_prefix_may_be_moved(self):
        moved = home / "elsewhere" / "deep"
        moved.parent.mkdir()
        (home / "pipewright").rename(moved)
        self.addCleanup(moved.parent.rmdir)
        self.addCleanup(moved.rename, home / "pipewright")
        loaded = shell(f"ldd {moved}/bin/pipewright").stdout
        self.assertIn(str(moved / "bin/../lib/libpipewright.so"), loaded)
        run = COMMANDS.splitlines()[-1].replace("~/pipewright", str(moved)) + " --out again"
        again = shell(run)
        self.assertEqual(0, again.returncode, again.stderr)
        self.assert_same_weights(harness.Run(home / "runs/first"), harness.Run(home / "again"))

    def test_the_examples_do_what_their_pages_say(self):
        """The commands after the installation; with power 0 the scheme is PipeDream."""
        examples = harness.SOURCE_DIR / "examples"
        folder = home / "staleness_aware"
        shutil.copytree(examples / "out-of-tree-scheme", folder)
        page = (folder / "README.md").read_text()
        install, use = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
        self.assertIn(install.strip(), COMMANDS)
        said = shell(use, folder)
        self.assertEqual(0, said.returncode, said.stdout + said.stderr)
        run = "~/pipewright/bin/pipewright run four_stages.yaml --plugin build/staleness_aware.so --quiet --out"
        for out, change in (("zero", "scheme.power=0"), ("pipedream", "scheme={name: pipedream}")):
            self.assertEqual(0, shell(f"{run} {out} --set '{change}'", folder).returncode)
        self.assert_same_weights(harness.Run(folder / "zero"), harness.Run(folder / "pipedream"))
        trained = (folder / "zero/final.safetensors").read_bytes()
        self.assertNotEqual(trained, next((folder / "runs").glob("*/final.safetensors")).read_bytes())

        told = shell(f"{examples}/read_results.py zero", folder)
        self.assertEqual(0, told.returncode, told.stderr)
        self.assertIn("done", told.stdout)

    def test_its_experiments_and_drawings_come_along(self):
        share = home / "pipewright/share"
        checked = shell(f"~/pipewright/bin/pipewright check {share}/pipewright/experiments/quickstart.yaml")
        self.assertEqual(0, checked.returncode, checked.stderr)
        for file in ("README.md", "LICENSE", "docs/spectrain.svg"):
            self.assertTrue((share / "doc/pipewright" / file).is_file(), file)

    def test_every_header_that_is_installed_stands_alone(self):
        """Each that a scheme may include is there with all that it includes, and needs no LibTorch."""
        include = home / "pipewright/include/pipewright"
        headers = sorted(str(header.relative_to(include)) for header in include.rglob("*.h"))
        self.assertLessEqual({"core/config/options.h", "core/schedule/builders.h"}, set(headers))
        for header in headers:
            if Path(header).parts[1] not in {"base", "config", "schedule", "system"}:
                continue  # of parts with tensors: see own_parts_test.py
            source = self.write("alone.cpp", f'#include "{header}"\n')
            compiled = subprocess.run(
                [CXX, "-std=c++20", "-fsyntax-only", "-I", include, source], capture_output=True, text=True
            )
            self.assertEqual(0, compiled.returncode, compiled.stderr)

    def test_another_minor_version_is_not_found(self):
        self.write("CMakeLists.txt", CMAKE.replace(f"Pipewright {MINOR}", "Pipewright 0.99"))
        self.write("half_way.cpp", SCHEME)
        found = shell(f"cmake -S . -B build -G Ninja -DCMAKE_PREFIX_PATH={home}/pipewright", self.folder)
        self.assertNotEqual(0, found.returncode)
        self.assertIn("compatible with requested version", found.stderr)


class Given(harness.EndToEnd):
    """The plugin with the program of the build."""

    def with_plugin(self, *arguments, **expected):
        return self.pipewright(*arguments, "--plugin", plugin, **expected)

    def test_every_command_that_knows_schemes_takes_it(self):
        self.write("h.yaml", HALF_WAY)
        self.assertIn("half_way", self.with_plugin("list", "schemes").out)
        self.assertIn("half_way", self.with_plugin("schema").out)
        self.assertIn("Part of the staleness", self.with_plugin("describe", "scheme", "half_way").out)
        for command in ("check", "schedule"):
            self.with_plugin(command, "h.yaml")
        bad = self.with_plugin("check", "h.yaml", "--set", "scheme.part=2", code=EXPERIMENT)
        self.assert_errors(bad, r"scheme\.part.*2")

    def test_a_sweep_hands_it_on_to_its_runs(self):
        self.write("s.yaml", TWO)
        done = self.with_plugin("sweep", "s.yaml", "--out", "sw")
        self.assertIn(f" --plugin {plugin}` shows", done.out)
        runs = [json.loads(file.read_text()) for file in self.folder.glob("sw/*/run.json")]
        self.assertEqual([("done", str(plugin))] * 2, [(run["state"], run["plugins"][0]["path"]) for run in runs])
        self.with_plugin("table", "s.yaml", "--out", "sw")

    def test_a_path_is_relative_to_the_current_folder(self):
        self.write("h.yaml", HALF_WAY)
        shutil.copy(plugin, self.folder / "mine.so")
        self.pipewright("run", "h.yaml", "--out", "r", "--plugin", "mine.so")
        recorded = json.loads((self.folder / "r/run.json").read_text())["plugins"]
        self.assertEqual([str(self.folder.resolve() / "mine.so")], [entry["path"] for entry in recorded])

    def test_without_it_the_scheme_is_unknown_and_the_run_says_that_none_took_part(self):
        self.write("h.yaml", HALF_WAY)
        unknown = self.pipewright("check", "h.yaml", code=EXPERIMENT)
        self.assert_errors(unknown, r"scheme\.name is 'half_way'; expected .* or zb_v; one of a plugin needs --plugin FILE$")
        near = self.pipewright("check", "h.yaml", "--set", "scheme={name: gpip}", code=EXPERIMENT)
        self.assertNotIn("--plugin", near.err)
        run = self.train(MLP, "plain")
        self.assertEqual([], json.loads((run.path / "run.json").read_text())["plugins"])

    def test_an_experiment_file_cannot_name_one(self):
        for section in ("", "scheme.", "pipeline.", "train."):
            self.write("y.yaml", changed(MLP, {f"{section}plugin": str(plugin)}))
            wrong = self.pipewright("run", "y.yaml", "--out", "y", code=EXPERIMENT)
            self.assert_errors(wrong, rf"y\.yaml:\d+:\d+: unknown option '{plain(section)}plugin'")
        self.write("y.yaml", MLP)
        wrong = self.pipewright("run", "y.yaml", "--set", f"plugin={plugin}", code=EXPERIMENT)
        self.assert_errors(wrong, r"unknown option 'plugin'")


class Compiled(harness.EndToEnd):
    """A test that compiles plugins of its own."""

    def shared_library(self, name, source, *flags, told=""):
        file = self.write(f"{name}.cpp", told + source)
        library = self.folder / f"{name}.so"
        include = home / "pipewright/include/pipewright"
        lib = home / "pipewright/lib"
        subprocess.run(
            [CXX, "-std=c++20", "-shared", "-fPIC", "-I", include, file, "-o", library, f"-L{lib}", "-lpipewright",
             *flags],
            check=True,
        )
        return library


class Throwing(Compiled):
    """Whatever a plugin throws is its own fault, and said to be."""

    SCHEME = """
#include <stdexcept>
#include <vector>
#include "core/base/error.h"
#include "core/config/options.h"
#include "core/schedule/builders.h"
namespace pipewright {
namespace {
class Crash final : public Scheme {
 public:
  explicit Crash(Options& options) : in_(options.text("in", "", "")), what_(options.text("what", "range", "")) {
    crash_in("constructor");
  }
  Schedule schedule(const PipelineShape& shape) const override {
    crash_in("schedule");
    return pipeline_schedule(shape, {}, latest_weights, latest_weights);
  }
  std::vector<int> placement(int) const override { crash_in("placement"); return {}; }
  bool repeats() const override { crash_in("repeats"); return true; }
  std::string remark() const override { crash_in("remark"); return {}; }

 private:
  void crash_in(const std::string& place) const {
    if (place != in_) return;
    if (what_ == "range") (void)std::vector<int>().at(7);
    if (what_ == "runtime") throw std::runtime_error("no way");
    if (what_ == "lines") throw std::runtime_error("no\\nway");
    if (what_ == "number") throw 42;
    if (what_ == "check") PIPEWRIGHT_CHECK(1 > 2, "that");
    if (what_ == "length") throw std::length_error("too long");
    if (what_ == "refusal") throw Error(ErrorKind::Experiment, "pipeline.stages is 2; expected 3");
  }
  std::string in_, what_;
};
}  // namespace
PIPEWRIGHT_SCHEME(crash, Crash, "Throws.")
}  // namespace pipewright
"""

    def test_it_is_named(self):
        library = self.shared_library("crash", self.SCHEME)
        said = f"the scheme 'crash' of the plugin {library} threw an exception: "
        of_range = "vector::_M_range_check"
        for place, what, code, text in (
            ("constructor", "range", SCHEDULE, said + of_range),
            ("schedule", "range", SCHEDULE, said + of_range),
            ("placement", "range", SCHEDULE, said + of_range),
            ("repeats", "range", SCHEDULE, said + of_range),
            ("remark", "range", SCHEDULE, said + of_range),
            ("schedule", "runtime", SCHEDULE, said + "no way"),
            ("schedule", "lines", SCHEDULE, said + r"no\nway"),
            ("remark", "lines", SCHEDULE, said + r"no\nway"),
            ("constructor", "lines", SCHEDULE, said + r"no\nway"),
            ("constructor", "refusal", EXPERIMENT, "pipeline.stages is 2; expected 3"),
            ("schedule", "number", SCHEDULE, said + "one of no known type"),
            ("schedule", "check", SCHEDULE, "that"),
            ("schedule", "length", SCHEDULE, said + "too long"),
            ("schedule", "refusal", EXPERIMENT, "pipeline.stages is 2; expected 3"),
        ):
            with self.subTest(place, what=what):
                self.write("x.yaml", changed(MLP, {"scheme": {"name": "crash", "in": place, "what": what}}))
                done = self.pipewright("check", "x.yaml", "--plugin", library, code=code)
                self.assertEqual(1, len(done.lines), done.err)
                if place not in ("repeats", "remark"):  # which are asked when the file has been read
                    self.assertRegex(done.err, r"^x\.yaml:\d+:\d+: ")
                self.assertIn(text, done.err)
                self.assertEqual(code == SCHEDULE, said in done.err)
                self.assertNotIn("bug", done.err)


class Refused(Compiled):
    def refused(self, *files):
        arguments = [word for file in files for word in ("--plugin", file)]
        return self.pipewright("list", "schemes", *arguments, code=EXPERIMENT)

    def shared_library(self, name, source, *flags):
        """Says so on stdout when it is loaded."""
        told = '#include <cstdio>\nstatic const int told = std::puts("its code ran");\n'
        return super().shared_library(name, source, *flags, told=told)

    def test_one_of_another_version_says_both_and_its_code_never_runs(self):
        other = self.folder / "other"
        shutil.copytree(home / "pipewright", other)
        header = other / "include/pipewright/core/base/version.h"
        header.write_text(header.read_text().replace(VERSION, "0.99.3"))
        self.write("half_way.cpp", SCHEME + '#include <cstdio>\nstatic const int told = std::puts("its code ran");\n')
        self.write("CMakeLists.txt", CMAKE)
        built = shell(f"cmake -S . -B b -G Ninja -DCMAKE_PREFIX_PATH={other} && cmake --build b", self.folder)
        self.assertEqual(0, built.returncode, built.stdout + built.stderr)
        wrong = self.refused("b/half_way.so")
        self.assertEqual(
            f"b/half_way.so: its scheme 'half_way' was compiled with Pipewright 0.99.3, this is {VERSION}; "
            f"build it again with find_package(Pipewright {MINOR})\n",
            wrong.err,
        )
        self.assertEqual("", wrong.out)

    def test_the_code_of_one_that_fits_runs(self):
        """So that the test above would see it."""
        fits = self.shared_library("fits", SCHEME)
        self.assertIn("its code ran", self.pipewright("list", "schemes", "--plugin", fits).out)

    def test_what_is_no_shared_library(self):
        self.write("text.so", "not a library\n")
        self.write("cut.so", plugin.read_bytes()[:3000])
        self.assert_errors(self.refused("none.so"), r"^none\.so: cannot open: No such file")
        self.assert_errors(self.refused(self.folder), r": cannot read: Is a directory$")
        self.assert_errors(self.refused("text.so"), r"^text\.so: is not a shared library; expected one that CMake's add_")
        self.assert_errors(self.refused("cut.so"), r"^cut\.so: (has no part|cannot be loaded)")
        self.pipewright("list", "--plugin", code=EXPERIMENT)

    def test_one_without_a_part(self):
        empty = self.shared_library("empty", "")
        wrong = self.refused(empty)
        self.assert_errors(wrong, r"empty\.so: has no part for Pipewright; expected a source with PIPEWRIGHT_SCHEME\(…\), .* in it$")
        self.assertEqual("", wrong.out)
        self.assert_errors(self.refused(home / "pipewright/lib/libpipewright.so"), "has no part")

    def test_names_that_are_taken(self):
        shutil.copy(plugin, self.folder / "again.so")
        self.assert_errors(
            self.refused(plugin, "again.so"),
            rf"its scheme 'half_way' exists already, in {plain(str(plugin))}; give it another name$",
        )
        gpipe = self.shared_library("gpipe", SCHEME.replace("PIPEWRIGHT_SCHEME(half_way", "PIPEWRIGHT_SCHEME(gpipe"))
        wrong = self.refused(gpipe)
        self.assert_errors(wrong, r"its scheme 'gpipe' exists already, in Pipewright itself; give")
        self.assertEqual("", wrong.out)

    def test_one_that_is_named_twice_is_loaded_once(self):
        twice = self.pipewright("list", "schemes", "--plugin", plugin, "--plugin", plugin)
        self.assertEqual(1, twice.out.count("half_way"))

    def test_one_that_the_system_cannot_load(self):
        lacking = self.shared_library("lacking", SCHEME + "void nowhere();\nstatic const int x = (nowhere(), 1);\n")
        self.assert_errors(self.refused(lacking), r"lacking\.so: cannot be loaded: undefined symbol: .*nowhere")

    def test_one_whose_start_throws(self):
        throws = self.shared_library("throws", SCHEME + "#include <stdexcept>\nstatic const int x = (throw std::runtime_error(\"no way\"), 1);\n")
        self.assert_errors(self.refused(throws), r"throws\.so: cannot be loaded: its start threw an exception: no way$")

    def test_one_that_everybody_may_write(self):
        fits = self.shared_library("fits", SCHEME)
        fits.chmod(0o777)
        wrong = self.refused(fits)
        self.assert_errors(wrong, r"fits\.so: may be written by everybody, .*; forbid that with `chmod o-w`$")
        self.assertEqual("", wrong.out)

    def test_one_that_changes_while_it_is_loaded(self):
        """What has been hashed and what runs would not be the same."""
        write = '[] { std::FILE* f = std::fopen("fits.so", "a"); std::fputc(0, f); std::fclose(f); }()'
        for change in ('std::rename("other.so", "fits.so")', 'std::remove("fits.so")', write):
            self.write("other.so", "")
            self.shared_library("fits", SCHEME + f"static const int changing = ({change}, 0);\n")
            with self.subTest(change):
                self.assert_errors(self.refused("fits.so"), r"^fits\.so: was replaced or written to while it was loaded")

    def test_a_library_of_its_own_lies_beside_it(self):
        helper = "__attribute__((visibility(\"default\"))) int helper() { return 1; }\n"
        self.write("helper.cpp", helper)
        subprocess.run([CXX, "-shared", "-fPIC", "helper.cpp", "-o", "libhelper.so"], cwd=self.folder, check=True)
        fits = self.shared_library("fits", SCHEME + "int helper();\nstatic const int helped = helper();\n",
                                   f"-L{self.folder}", "-lhelper", "-Wl,-rpath,$ORIGIN")
        self.assertIn("half_way", self.pipewright("list", "schemes", "--plugin", fits).out)

    def test_one_that_only_looks_as_if_it_had_a_scheme(self):
        ghost = f'extern const char ghost[] = "pipewright part|scheme|{VERSION}|libstdc++|none|ghost";\n'
        self.assert_errors(self.refused(self.shared_library("ghost", ghost)), r"did not register its scheme 'ghost'; link")
        future = ghost.replace("|scheme|", "|oracle|")
        self.assert_errors(
            self.refused(self.shared_library("future", future)),
            r"its oracle 'ghost' is of no known kind; expected scheme, model, .*",
        )


if __name__ == "__main__":
    harness.main()
