// SPDX-License-Identifier: Apache-2.0
/// The precompiled header of our .cpp files: the parts of LibTorch that they use. Headers include
/// ATen/core/Tensor.h at most.
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include <string>
#include <vector>
