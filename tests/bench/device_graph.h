// SPDX-License-Identifier: Apache-2.0
/// The functions of the module device_graph, which LibTorch's CUDA half must have been loaded for.
#pragma once

extern "C" {
/// Does work so many times, then captures it once more without doing it, on the current stream,
/// which must not be the default one. Throws LibTorch's errors.
void* pipewright_capture(void (*work)(void*), void* argument, int warm_ups);
void pipewright_replay(void* graph);
void pipewright_release(void* graph);
}
