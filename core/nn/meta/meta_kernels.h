// SPDX-License-Identifier: Apache-2.0
/// Kernels on the meta device for operators that LibTorch has there in Python only.
#pragma once

namespace pipewright {

/// Registers the missing kernels, once in a process; operators that consist of them run on the meta
/// device from then on. A kernel of LibTorch's own is left in its place. They are boxed, because
/// the types of arguments change between versions of LibTorch.
void fill_meta_kernels();

}  // namespace pipewright
