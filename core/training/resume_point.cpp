// SPDX-License-Identifier: Apache-2.0
#include "core/training/resume_point.h"

#include <unistd.h>

#include <algorithm>

#include "core/base/error_at.h"
#include "core/system/host_name.h"

namespace pipewright {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kTold = 4;  // processes named in a message

std::string described(const FoundManifest& found) {
  if (found.damage) return concat("a damaged manifest (", found.damage->message(), ")");
  if (found.manifest->minibatches == 0) return "no checkpoint yet";
  return concat("a checkpoint after mini-batch ", found.manifest->minibatches, " (", found.digest,
                ")");
}

/// The checkpoints that this process sees, in words; equal words mean equal checkpoints.
std::string view_of(const std::vector<FoundManifest>& all, const std::string& experiment) {
  std::string view = concat(experiment, "\n", host_name(), "\n");
  if (all.empty()) view += "no checkpoint";
  for (std::size_t i = 0; i < all.size(); ++i)
    view += concat(i > 0 ? ", before it " : "", described(all[i]));
  return view;
}

/// The parts of such a text, one per line.
struct View {
  explicit View(const std::string& text) {
    const std::size_t first = text.find('\n'), second = text.find('\n', first + 1);
    experiment = text.substr(0, first);
    host = text.substr(first + 1, second - first - 1);
    sees = text.substr(second + 1);
  }
  std::string experiment, host, sees;
};

/// Compares the views of all processes, in process 0. Throws if they differ.
void compare(const std::vector<std::string>& views, const fs::path& checkpoints) {
  const View first(views.front());
  std::vector<std::string> others;
  for (std::size_t rank = 1; rank < views.size(); ++rank) {
    const View view(views[rank]);
    if (view.experiment != first.experiment)
      others.push_back(concat("rank ", rank, " on ", view.host, " reads another experiment (",
                              view.experiment, ")"));
    else if (view.sees != first.sees)
      others.push_back(concat("rank ", rank, " on ", view.host, " sees ", view.sees));
  }
  if (others.empty()) return;
  const std::size_t all = others.size();
  if (all > kTold) others.resize(kTold);
  throw data_error(checkpoints, "the processes cannot go on together: rank 0 on ", first.host,
                   " sees ", first.sees, ", ", join(others, ", "),
                   all > kTold ? concat(" and ", all - kTold, " more differ") : "",
                   "; is the folder shared by all hosts?");
}

/// Verifies this process's part of the files; returns the error of the first damaged one.
std::optional<Error> damage_in(const CheckpointManifest& manifest, const fs::path& checkpoints,
                               const Team& team) {
  try {
    if (team.first())
      for (const RowLogPart& log : {manifest.steps, manifest.probes})
        check_row_log(checkpoints, log);
    const auto size = static_cast<std::size_t>(team.size());
    for (auto i = static_cast<std::size_t>(team.rank()); i < manifest.files.size(); i += size)
      check_file(checkpoints / manifest.folder() / manifest.files[i].name, manifest.files[i]);
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

/// Collective: whether any process found damage; `known` in process 0 is the first one found.
bool any_damage(const std::optional<Error>& own, Team& team, std::optional<Error>& known) {
  const auto all = team.gather(own ? concat(own->where(), "\n", own->message()) : "");
  for (const std::string& text : all) {
    const std::size_t end = text.find('\n');
    if (known || end == std::string::npos) continue;
    known.emplace(ErrorKind::Data, text.substr(end + 1), text.substr(0, end));
  }
  double damaged = own ? 1 : 0;
  team.sum({&damaged, 1});
  return damaged > 0;
}

}  // namespace

ResumePoint choose_checkpoint(const fs::path& checkpoints, const std::string& experiment,
                              Team& team) {
  const std::vector<FoundManifest> found = find_manifests(checkpoints);
  const auto views = team.gather(view_of(found, experiment));
  if (team.first()) compare(views, checkpoints);
  team.barrier();               // the others end here if process 0 has thrown
  std::optional<Error> damage;  // of the newest checkpoint
  for (const FoundManifest& each : found) {
    if (each.damage) {
      if (!damage) damage = each.damage;
      continue;
    }
    if (each.manifest->minibatches == 0) {
      if (damage) break;
      return {};
    }
    std::optional<Error> own = damage_in(*each.manifest, checkpoints, team), told;
    if (!any_damage(own, team, told)) {
      if (!damage) return {each.manifest, {}};
      return {each.manifest, concat("the newest checkpoint is damaged (", damage->what(),
                                    "); going on from the one before it")};
    }
    if (!damage) damage = told ? told : own;
  }
  if (!damage) return {};
  if (team.first())
    throw data_error(damage->where(), damage->message(), "; give --overwrite to begin anew");
  team.barrier();
  throw data_error(checkpoints, "process 0 has found no checkpoint that is whole");
}

}  // namespace pipewright
