/// The processor a training runs on: another one may give other bits.
#pragma once

#include <string>

namespace pipewright {

/// "AMD EPYC 9654 96-Core Processor", as the operating system calls it; "unknown".
std::string processor_name();

/// "AVX2": the instructions that LibTorch's loops are made of; then what restricts its libraries to
/// fewer, ", MKL_CBWR=COMPATIBLE".
std::string instruction_set();

}  // namespace pipewright
