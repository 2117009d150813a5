# SPDX-License-Identifier: Apache-2.0
"""torchvision's convolutional networks, imported: trained as PyTorch trains them, whatever the cut.

graph_vision_test.py Vision.test_resnet18 compares this one only.
"""

import skips
import torch
from graph_cases import CONVOLUTIONS
from graph_training import GraphTraining, add_tests


class Vision(GraphTraining):
    pass


add_tests(Vision, CONVOLUTIONS)

if __name__ == "__main__":
    torch.set_num_threads(1)
    skips.main()
