// SPDX-License-Identifier: Apache-2.0
// Loaded with LD_PRELOAD, makes the k-th call of one function of MPI report an error, or raises a
// signal before it.
//
//   FAILING_MPI_CALL     MPI_Init_thread, MPI_Comm_dup, MPI_Isend, MPI_Irecv, MPI_Test,
//   MPI_Improbe,
//                        MPI_Ibarrier or MPI_Finalize; "load" for the start of the program, with a
//                        signal only
//   FAILING_MPI_AT       k, from 1
//   FAILING_MPI_RANK     only in the process that Open MPI gives this rank
//   FAILING_MPI_SIGNAL   the number of the signal; none: an error
#include <mpi.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>

namespace {

bool equals(const char* variable, const char* wanted) {
  const char* const value = std::getenv(variable);
  return value != nullptr && wanted != nullptr && std::strcmp(value, wanted) == 0;
}

/// Of each call that `chosen` says is the one: counts it, and says whether it fails.
bool fails(bool chosen) {
  static const bool concerned = equals("FAILING_MPI_RANK", std::getenv("OMPI_COMM_WORLD_RANK"));
  static std::atomic<long> calls{0};
  if (!concerned || !chosen || ++calls != std::atol(std::getenv("FAILING_MPI_AT"))) return false;
  const char* const signal = std::getenv("FAILING_MPI_SIGNAL");
  if (signal == nullptr) return true;
  std::raise(std::atoi(signal));
  return false;
}

[[maybe_unused]] const bool loaded = fails(equals("FAILING_MPI_CALL", "load"));

}  // namespace

extern "C" {

int MPI_Init_thread(int* count, char*** values, int wanted, int* given) {
  static const bool chosen = equals("FAILING_MPI_CALL", "MPI_Init_thread");
  return fails(chosen) ? MPI_ERR_INTERN : PMPI_Init_thread(count, values, wanted, given);
}

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm* copy) {
  static const bool chosen = equals("FAILING_MPI_CALL", "MPI_Comm_dup");
  return fails(chosen) ? MPI_ERR_INTERN : PMPI_Comm_dup(comm, copy);
}

int MPI_Isend(const void* data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,
              MPI_Request* request) {
  static const bool chosen = equals("FAILING_MPI_CALL", "MPI_Isend");
  return fails(chosen) ? MPI_ERR_INTERN : PMPI_Isend(data, count, type, peer, tag, comm, request);
}

int MPI_Irecv(void* data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,
              MPI_Request* request) {
  static const bool chosen = equals("FAILING_MPI_CALL", "MPI_Irecv");
  return fails(chosen) ? MPI_ERR_INTERN : PMPI_Irecv(data, count, type, peer, tag, comm, request);
}

int MPI_Test(MPI_Request* request, int* complete, MPI_Status* status) {
  static const bool chosen = equals("FAILING_MPI_CALL", "MPI_Test");
  return fails(chosen) ? MPI_ERR_INTERN : PMPI_Test(request, complete, status);
}

int MPI_Improbe(int peer, int tag, MPI_Comm comm, int* there, MPI_Message* message,
                MPI_Status* status) {
  static const bool chosen = equals("FAILING_MPI_CALL", "MPI_Improbe");
  return fails(chosen) ? MPI_ERR_INTERN : PMPI_Improbe(peer, tag, comm, there, message, status);
}

int MPI_Ibarrier(MPI_Comm comm, MPI_Request* request) {
  static const bool chosen = equals("FAILING_MPI_CALL", "MPI_Ibarrier");
  return fails(chosen) ? MPI_ERR_INTERN : PMPI_Ibarrier(comm, request);
}

int MPI_Finalize() {
  static const bool chosen = equals("FAILING_MPI_CALL", "MPI_Finalize");
  return fails(chosen) ? MPI_ERR_INTERN : PMPI_Finalize();
}

}  // extern "C"
