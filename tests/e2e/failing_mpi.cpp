// SPDX-License-Identifier: Apache-2.0
// Loaded with LD_PRELOAD, makes the k-th and all later calls of one function of MPI report an
// error.
//
//   FAILING_MPI_CALL   MPI_Isend, MPI_Irecv, MPI_Test or MPI_Improbe
//   FAILING_MPI_AT     k, from 1
//   FAILING_MPI_RANK   only in the process that Open MPI gives this rank
#include <mpi.h>

#include <atomic>
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
  return concerned && chosen && ++calls == std::atol(std::getenv("FAILING_MPI_AT"));
}

}  // namespace

extern "C" {

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

}  // extern "C"
