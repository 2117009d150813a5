# SPDX-License-Identifier: Apache-2.0
"""Networks with attention or recurrence, imported: trained as PyTorch trains them, whatever the cut.

graph_sequences_test.py Sequences.test_gpt2 compares this one only.
"""

import skips
import torch
from graph_cases import SEQUENCES
from graph_training import GraphTraining, add_tests


class Sequences(GraphTraining):
    pass


add_tests(Sequences, SEQUENCES)

if __name__ == "__main__":
    torch.set_num_threads(1)
    skips.main()
