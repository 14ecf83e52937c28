"""What tests have in common."""

import pytest

#: Every environment of a single switch.
SWITCH = "bufgym/NDT-16x1G-v0"
NETWORK = "bufgym/LeafSpine-4x4-v0"
#: A scenario whose episodes are short.
SMALL = {"ports": 4, "active_ports": (1, 4), "incast_degree": (1, 3), "flows": (300, 300)}


@pytest.fixture
def small():
    """Keyword arguments of an environment whose episodes are short."""
    return {"settings": SMALL}
