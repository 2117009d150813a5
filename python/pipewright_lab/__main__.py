# SPDX-License-Identifier: Apache-2.0
"""`python -m pipewright_lab` is the command `pipewright-lab`."""

from .start import main

main()
