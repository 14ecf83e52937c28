"""Pictures."""

import gymnasium
import numpy as np
import pytest

import bufgym
from conftest import SWITCH

QUEUE, FULL, THRESHOLD, OCCUPANCY = (66, 118, 180), (200, 60, 50), (235, 140, 30), (130, 130, 130)


def rows_of(picture, column, color):
    """Rows in which a column has a colour."""
    return np.flatnonzero((picture[:, column] == color).all(axis=1))


def test_a_picture_shows_queues_and_thresholds():
    env = bufgym.make(SWITCH, render_mode="rgb_array")
    env.reset(seed=1)
    # Before a decision all ports have α = 1; the queue that triggered it is the share of the observation.
    for step in range(40):
        observation = env.step(np.full(16, -0.4, np.float32))[0]
    picture = env.render()
    assert picture.shape == (240, 404, 3) and picture.dtype == np.uint8
    span, axis = 240 - 20 - 24, 240 - 24
    shares = observation[:, -1, 0]
    assert (shares > 0).sum() >= 2
    for port, share in enumerate(shares):
        # The middle of a bar, without the line of the threshold, which is 2 rows.
        column = 44 + 22 * port + 7
        height = axis - min([axis, *rows_of(picture, column, QUEUE), *rows_of(picture, column, FULL)])
        assert abs(height - np.floor(share * span)) <= 2
        # The threshold is the same for all ports: they have the same α.
        assert rows_of(picture, 44 + 22 * port - 1, THRESHOLD).tolist()[:2] == rows_of(picture, 43, THRESHOLD).tolist()[:2]
    # α(B - Q) with α = 1/2 or 1 or 2 by the cell of -0.4: that of index 2, α = 1.
    occupancy = shares.sum()
    line = rows_of(picture, 43, THRESHOLD)[:2].max()
    assert abs((axis - line) / span - (1 - occupancy)) < 0.02
    bar = rows_of(picture, 44 - 16 + 2, OCCUPANCY)
    assert abs(len(bar) / span - occupancy) < 0.02


def test_pictures_of_many(small):
    envs = bufgym.make_vec(SWITCH, 3, render_mode="rgb_array", **small)
    envs.reset(seed=1)
    pictures = envs.render()
    assert len(pictures) == 3 and all(picture.shape == (240, 140, 3) for picture in pictures)
    assert bufgym.make_vec(SWITCH, 3, **small).render() is None


def test_gymnasium_records_them(small):
    env = gymnasium.make(SWITCH, render_mode="rgb_array", **small)
    env.reset(seed=1)
    assert env.render().shape == (240, 140, 3)


@pytest.mark.parametrize("ports", [2, 96])
def test_any_number_of_ports_has_a_picture(ports):
    settings = {"ports": ports, "active_ports": 1, "incast_degree": 1} if ports == 2 else {}
    env_id = "bufgym/NDT-96x10G-Incast-v0" if ports == 96 else SWITCH
    env = bufgym.make(env_id, render_mode="rgb_array", settings=settings)
    assert env.render().shape == (240, 44 + 22 * ports + 8, 3)
