"""What tests have in common."""

import pytest
import torch

# Networks are small: threads would only wait for each other.
torch.set_num_threads(1)

#: The environment of most tests, and one of several switches.
SWITCH = "bufgym/NDT-16x1G-v0"
NETWORK = "bufgym/LeafSpine-4x4-v0"
#: A scenario whose episodes are short.
SMALL = {"ports": 4, "active_ports": (1, 4), "incast_degree": (1, 3), "flows": (300, 300)}


@pytest.fixture
def small():
    """Keyword arguments of an environment whose episodes are short."""
    return {"settings": SMALL}
