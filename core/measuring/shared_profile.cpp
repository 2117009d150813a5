// SPDX-License-Identifier: Apache-2.0
#include "core/measuring/shared_profile.h"

#include "core/base/error.h"
#include "core/base/wording.h"
#include "core/measuring/profiling.h"
#include "core/runtime/devices/device.h"
#include "core/system/file.h"
#include "core/system/folder_lock.h"

namespace pipewright {

at::Device profiled_device(const Experiment& e) {
  return resolve_devices({e.pipeline.devices.front()}, e.where("pipeline.device")).front();
}

std::filesystem::path profile_path(const Experiment& e, at::Device device,
                                   const std::filesystem::path& folder) {
  return folder / concat("profile-", digest(profile_value(described(e, device))), ".yaml");
}

Profile load_profile(const std::filesystem::path& file, const Experiment& experiment,
                     at::Device device, const std::string& where) {
  Profile profile = load_profile(file);
  const bool bytes_will_do = experiment.measured_balance && experiment.measured_balance->by_memory;
  const bool counted = bytes_will_do && !profile.timed;
  if (const std::string why = misfit(profile, experiment, counted ? at::kMeta : device);
      !why.empty())
    throw Error(ErrorKind::Experiment,
                concat("the profile ", file.string(), " does not fit: ", why,
                       "; make it anew with `pipewright profile`"),
                where);
  return profile;
}

Profile shared_profile(const Experiment& e, const LayoutRequest& request,
                       const std::string& option) {
  const at::Device device = profiled_device(e);
  const std::filesystem::path folder = request.runs.empty() ? "." : request.runs;
  make_folders(folder);
  const FolderTurn turn(folder);  // one process measures; the others then find the file
  const auto file = profile_path(e, device, folder);
  if (std::filesystem::exists(file)) return load_profile(file, e, device, {});
  if (request.tell)
    request.tell(concat("measuring the ", counted(e.layers.size(), "layer"), " of ",
                        e.resolved.find_path("model.name")->text, " for ", option, ", into ",
                        file.string()));
  Profile profile = measure(e, {.device = device, .tell = request.tell});
  write_file(file, to_yaml(profile_value(profile)));
  return profile;
}

}  // namespace pipewright
