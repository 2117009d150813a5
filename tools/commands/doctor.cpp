// SPDX-License-Identifier: Apache-2.0
// `pipewright doctor`: prints what this machine offers, and how to install what is missing.
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "core/base/text.h"
#include "core/base/wording.h"
#include "core/processes/mpi_wire.h"
#include "core/runtime/build_info.h"
#include "core/runtime/devices/device.h"
#include "core/runtime/devices/nccl.h"
#include "core/system/file.h"
#include "core/system/terminal.h"
#include "tools/command.h"
#include "tools/start/libtorch.h"

namespace pipewright {
namespace {

namespace fs = std::filesystem;

void say(const char* what, bool there, const std::string& found) {
  print("%-10s %-7s %s\n", what, there ? "ok" : "absent", found.c_str());
}

void say_build() {
  const BuildInfo& build = build_info();
  const std::string type = build.build_type;
  say("pipewright", true,
      concat(build.version, ", ", type.empty() ? "no build type" : type, ", ", build.compiler,
             type == "Debug" ? " (a Release build is several times faster)" : ""));
  say("LibTorch", true, concat(build.torch_version, " in ", loaded_torch_root().string()));
}

/// Why there is no usable CUDA device, and what to do about it.
std::string missing_cuda(bool library, bool driver) {
  const std::string gpu =
      driver ? "there is a GPU driver" : "no GPU driver; nothing to do, experiments run on the CPU";
  if (!library)
    return concat("LibTorch has no libtorch_cuda.so, ", gpu,
                  driver ? ": build against a LibTorch with CUDA" : "");
  if (!cuda_load_error().empty())
    return concat("libtorch_cuda.so is there but cannot be loaded (", cuda_load_error(), "), ", gpu,
                  driver ? ": install what it needs, or build against another LibTorch" : "");
  return concat("libtorch_cuda.so is loaded, but finds no GPU that it can use, ", gpu,
                driver ? ": see whether `nvidia-smi` works and the driver is new enough" : "");
}

void say_cuda() {
  const bool library = fs::exists(loaded_torch_root() / "lib" / "libtorch_cuda.so");
  const bool driver = fs::exists("/dev/nvidiactl") || fs::exists("/proc/driver/nvidia/version");
  const int devices = library ? cuda_device_count() : 0;
  say("CUDA", devices > 0,
      devices > 0 ? concat(counted(devices, "device"), "; choose with pipeline.device: cuda",
                           find_nccl() != nullptr
                               ? ""
                               : "; without libnccl.so.2, execution: mpi goes through the host")
                  : missing_cuda(library, driver));
}

fs::path on_path(const std::string& program) {
  for (const std::string& folder : split(environment_value("PATH"), ':'))
    if (std::error_code ignored;
        !folder.empty() && fs::is_regular_file(fs::path(folder) / program, ignored))
      return fs::path(folder) / program;
  return {};
}

void say_mpi() {
  const fs::path program = on_path("mpirun");
  if (!mpi_is_built())
    say("MPI", false, "not built; install libopenmpi-dev and openmpi-bin for execution: mpi");
  else
    say("MPI", !program.empty(),
        program.empty() ? "built, but no mpirun on the PATH; install openmpi-bin"
                        : program.string());
}

/// Bytes in a line such as "MemTotal:  24631928 kB" of /proc/meminfo; 0 without such a line.
double memory_in_bytes(const std::string& line_name) {
  std::ifstream file("/proc/meminfo");
  std::string name, unit;
  for (double kilobytes = 0; file >> name >> kilobytes; std::getline(file, unit))
    if (name == line_name + ":") return kilobytes * 1024;
  return 0;
}

void say_machine() {
  say("cores", true, std::to_string(std::thread::hardware_concurrency()));
  const double total = memory_in_bytes("MemTotal");
  say("memory", total > 0,
      total > 0 ? concat(bytes_text(total), ", of which ",
                         bytes_text(memory_in_bytes("MemAvailable")), " are free")
                : std::string("/proc/meminfo does not say"));
}

void say_folder(const fs::path& folder, const std::string& wanted_by) {
  std::error_code failed;
  std::set<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, failed))
    if (entry.is_directory()) names.insert(entry.path().filename().string());
  if (failed)
    say("data", false, concat(folder.string(), wanted_by, ": ", failed.message()));
  else
    say("data", true,
        concat(folder.string(), wanted_by, ": ",
               names.empty() ? "no folders" : join(std::vector(names.begin(), names.end()), ", ")));
}

/// Prints where "~/data" is, which PIPEWRIGHT_DATA may change.
void say_data() try {
  const bool given = !environment_value("PIPEWRIGHT_DATA").empty();
  const fs::path folder = resolved_path("~/data", ".");
  std::error_code ignored;
  if (given || fs::is_directory(folder, ignored))
    say_folder(folder, given ? " ($PIPEWRIGHT_DATA, instead of ~/data)" : "");
  else
    say("data", false,
        concat(folder.string(),
               " is not there, and PIPEWRIGHT_DATA names no other folder; the data sets digits and "
               "synthetic need none, others say in `pipewright describe dataset NAME` what they "
               "read; `pipewright fetch` downloads some"));
} catch (const Error& error) {
  say("data", false, error.what());
}

int run_doctor(const std::vector<std::string>& arguments) {
  CommandLine line(kDoctor, "Says what this machine offers, and what to do about what is absent.");
  if (!line.parse(arguments)) return 0;
  need_libtorch();
  say_build();
  say_cuda();
  say_mpi();
  say_machine();
  say_data();
  return 0;
}

}  // namespace

const Command kDoctor{"doctor", "doctor", "what this machine offers, and what is absent",
                      run_doctor};

}  // namespace pipewright
