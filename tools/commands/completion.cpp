// SPDX-License-Identifier: Apache-2.0
// `pipewright completion`: completes command lines in bash and zsh. The shells' scripts ask this
// command at each TAB, so that they know what the program knows.
#include <algorithm>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/experiment/catalogue.h"
#include "core/fetch/sources.h"
#include "core/simulation/shipped_hardware.h"
#include "core/system/terminal.h"
#include "tools/command.h"
#include "tools/part_kinds.h"
#include "tools/table_sections.h"

namespace pipewright {
namespace {

using Words = std::vector<std::string>;

constexpr const char* kBash = R"sh(# Completes command lines of pipewright in bash.
_pipewright() {
  local IFS=$'\n'
  COMPREPLY=($("$1" completion words "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
  if [[ ${COMPREPLY[0]-} == *= ]]; then compopt -o nospace; fi
}
complete -o default -F _pipewright pipewright
)sh";

constexpr const char* kZsh = R"sh(#compdef pipewright
# Completes command lines of pipewright in zsh.
_pipewright() {
  local -a found
  found=(${(f)"$("${(Q)words[1]}" completion words "${(@Q)words[2,CURRENT]}" 2>/dev/null)"})
  if (( $#found == 0 )); then
    _files
  elif [[ $found[1] == *= ]]; then
    compadd -S '' -- $found
  else
    compadd -- $found
  fi
}
if [[ $funcstack[1] == _pipewright ]]; then _pipewright "$@"; else compdef _pipewright pipewright; fi
)sh";

/// "train.epochs=" and the like, for --set.
void add_keys(const std::vector<OptionInfo>& options, const std::string& section, Words& keys) {
  for (const OptionInfo& option : options) {
    const std::string key = section.empty() ? option.name : concat(section, ".", option.name);
    if (option.section.empty())
      keys.push_back(key + "=");
    else
      add_keys(option.section, key, keys);
  }
}

Words hardware_names() {
  Words names;
  for (const ShippedHardware& each : shipped_hardware()) names.push_back(each.name);
  return names;
}

/// What `list` takes.
Words plurals() {
  Words all;
  for (const PartKind& kind : part_kinds()) all.push_back(kind.plural);
  all.emplace_back("hardware");
  return all;
}

/// What `describe` takes first.
Words described_words() {
  Words all;
  for (const PartKind& kind : part_kinds()) all.push_back(kind.name);
  for (const OptionInfo& info : plain_sections())
    if (info.type == OptionInfo::Type::Section) all.push_back(info.name);
  return all;
}

Words parts_of(const std::string& kind) {
  if (kind == "hardware") return hardware_names();
  for (const PartKind& each : part_kinds())
    if (kind == each.name || kind == each.plural) return each.names();
  return {};
}

Words fetched_names() {
  Words names;
  for (const Source& source : sources()) names.push_back(source.dataset);
  return names;
}

/// What may follow these arguments of a command; none where that is a file.
Words next_arguments(const std::string& command, const Words& before) {
  const std::size_t count = before.size();
  if (command == kList.name && count == 0) return plurals();
  if (command == kDescribe.name && count == 0) return described_words();
  if (command == kDescribe.name && count == 1) return parts_of(before[0]);
  if (command == kFetch.name && count == 0) return fetched_names();
  if (command == kNew.name && count == 0) return {"scheme", "model", "dataset"};
  if (command == kCompletion.name && count == 0) return {"bash", "zsh"};
  return {};
}

/// What may stand behind an option; none where that is a file or anything.
Words values_of(const std::string& option) {
  Words keys;
  if (option == "--set") add_keys(experiment_options(), {}, keys);
  if (option == "--hardware") return hardware_names();
  return keys;
}

/// What may stand in the place of the last of these words, which follow the program's name.
Words candidates(const Words& words) {
  if (words.size() <= 1) {
    Words names;
    for (const Command* command : commands()) names.emplace_back(command->name);
    return names;
  }
  const std::vector<const Command*> all = commands();
  const auto command =
      std::ranges::find_if(all, [&](const Command* c) { return c->name == words[0]; });
  if (command == all.end()) return {};
  const CommandOutline outline = outline_of(**command);
  const auto takes_value = [&](const std::string& word) {
    return std::ranges::count(outline.options, word) > 0;
  };
  if (takes_value(words[words.size() - 2])) return values_of(words[words.size() - 2]);
  Words before;
  for (std::size_t i = 1; i + 1 < words.size(); ++i)
    if (!words[i].starts_with('-') && !takes_value(words[i - 1])) before.push_back(words[i]);
  if (!words.back().starts_with('-')) return next_arguments(words[0], before);
  Words options = outline.flags;
  options.insert(options.end(), outline.options.begin(), outline.options.end());
  return options;
}

void print_candidates(const Words& words) {
  const std::string begun = words.empty() ? std::string() : words.back();
  for (const std::string& word : candidates(words))
    if (word.starts_with(begun)) print("%s\n", word.c_str());
}

int run_completion(const std::vector<std::string>& arguments) {
  if (!arguments.empty() && arguments[0] == "words") {  // its words are those of other commands
    print_candidates({arguments.begin() + 1, arguments.end()});
    return 0;
  }
  CommandLine line(
      kCompletion,
      "Prints a script that completes commands, options, keys of --set and names of parts. In "
      "bash: "
      "`source <(pipewright completion bash)`, in ~/.bashrc; in zsh: `pipewright completion zsh "
      ">_pipewright`, in a folder of $fpath.\n\n"
      "The scripts ask `pipewright completion words WORD…` what may stand in the place of the last "
      "of these words of a command line.");
  line.positional("SHELL", "bash or zsh", 1, 1);
  if (!line.parse(arguments)) return 0;
  const std::string shell = line.text("SHELL");
  if (shell != "bash" && shell != "zsh")
    throw Error(ErrorKind::Experiment,
                concat("there is no completion for '", shell, "'; expected bash or zsh"));
  print("%s", shell == "bash" ? kBash : kZsh);
  return 0;
}

}  // namespace

const Command kCompletion{"completion", "completion bash | zsh",
                          "completes command lines in a shell", run_completion};

}  // namespace pipewright
