# SPDX-License-Identifier: Apache-2.0
"""Completion at TAB: what a shell offers is what the program has and takes."""

import re
import subprocess

import harness
import skips
from harness import EXPERIMENT, MLP

# Prints what bash would offer for the command line $1, as its TAB does: words are split at = and :, too.
BASH = r"""
source <("$program" completion bash)
compopt() { echo "compopt $*"; }
words=() rest=$1
while [[ $rest =~ ^([^ =:]+|[=:]+|' '+) ]]; do
  [[ ${BASH_REMATCH[0]} == ' '* ]] || words+=("${BASH_REMATCH[0]}")
  rest=${rest:${#BASH_REMATCH[0]}}
done
[[ $1 != *' ' ]] || words+=('')
COMP_WORDS=("${words[@]}") COMP_CWORD=$((${#words[@]} - 1)) COMP_LINE=$1 COMP_POINT=${#1}
_pipewright "$program"
printf '%s\n' "${COMPREPLY[@]}"
"""
# The same in zsh, with a compadd that prints what it is given.
ZSH = r"""
compdef() { }
compadd() { print -l -- ${@[$(( ${@[(i)--]} + 1 )),-1]} }
_files() { print FILES }
eval "$($program completion zsh)"
words=(${(z)1}) CURRENT=${#${(z)1}}
if [[ $1 == *' ' ]]; then words+=(''); (( CURRENT++ )); fi
words[1]=$program
_pipewright
"""


class Completion(harness.EndToEnd):
    def words(self, *words):
        return self.pipewright("completion", "words", *words).out.splitlines()

    def commands(self):
        return re.findall(r"(?m)^  (\w+) {2,}\S", self.pipewright("--help").out)

    def test_all_commands_and_all_their_options(self):
        self.assertEqual(self.commands(), self.words(""))
        self.assertEqual(["schedule", "schema"], self.words("sche"))
        for command in self.commands():
            told = set(re.findall(r"(?m)^  (?:-\w \[ )?(--[\w-]+)", self.pipewright(command, "--help").out))
            self.assertEqual(told, set(self.words(command, "--")), command)
            self.assertEqual(told, set(self.words(command, "first.yaml", "-")), command)

    def test_what_is_offered_is_taken(self):
        for plural in self.words("list", ""):
            self.pipewright("list", plural)
        for kind in self.words("describe", ""):
            names = self.words("describe", kind, "")
            self.pipewright("describe", kind, *names[:1])
        for kind in self.words("new", ""):
            self.pipewright("new", kind, f"my_{kind}")
        for shell in self.words("completion", ""):
            self.assertIn("pipewright", self.pipewright("completion", shell).out)
        known = self.pipewright("fetch").out
        for name in self.words("fetch", ""):
            self.assertIn(name, known)

    def test_names_of_parts(self):
        listed = re.findall(r"(?m)^ +(\w+)  ", self.pipewright("list", "schemes").out)
        self.assertEqual(listed, self.words("describe", "scheme", ""))
        self.assertEqual(["pipedream", "pipedream_2bw"], self.words("describe", "scheme", "pipedream"))

    def test_keys_of_set(self):
        keys = self.words("run", "x.yaml", "--set", "")
        self.assertIn("train.epochs=", keys)
        self.assertIn("pipeline.compression.name=", keys)
        self.assertEqual(["train.epochs="], self.words("run", "x.yaml", "--set", "train.epo"))
        self.write("x.yaml", MLP)
        for key in keys:
            done = self.start("check", "x.yaml", "--set", f"{key}never")
            self.assertNotIn("unknown option", done.communicate(timeout=harness.SECONDS_LIMIT)[1], key)

    def test_nothing_where_files_or_anything_may_stand(self):
        for words in (("run", ""), ("run", "--out", ""), ("none", ""), ("run", "x.yaml", "--point", "")):
            self.assertEqual([], self.words(*words), words)

    def test_other_shells_are_refused(self):
        self.assert_errors(
            self.pipewright("completion", "fish", code=EXPERIMENT), r"^there is no completion for 'fish'; expected bash or zsh$"
        )

    def offered(self, shell, script, line):
        done = subprocess.run(
            [shell, "-c", f"program={harness.BINARY}\n{script}", shell, line], capture_output=True, text=True, check=False
        )
        self.assertEqual("", done.stderr)
        return done.stdout.split()

    def check_shell(self, shell, script):
        self.assertEqual(["check", "claims", "compare", "completion"], sorted(self.offered(shell, script, "pipewright c")))
        self.assertEqual(["--overwrite", "--out"], self.offered(shell, script, "pipewright run x.yaml --o"))
        self.assertEqual(["spectrain"], self.offered(shell, script, "pipewright describe scheme spec"))
        self.assertIn("run", self.offered(shell, script, "pipewright "))

    def test_in_bash(self):
        self.check_shell("bash", BASH)
        self.assertEqual(
            ["compopt", "-o", "nospace", "train.epochs="], self.offered("bash", BASH, "pipewright run x --set train.epo")
        )
        self.assertEqual([], self.offered("bash", BASH, "pipewright run x --set train.epochs=3"))

    @skips.needs("zsh")
    def test_in_zsh(self):
        self.check_shell("zsh", ZSH)
        self.assertEqual(["train.epochs="], self.offered("zsh", ZSH, "pipewright run x --set train.epo"))
        self.assertEqual(["FILES"], self.offered("zsh", ZSH, "pipewright run "))


if __name__ == "__main__":
    harness.main()
