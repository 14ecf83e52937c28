"""A policy of one's own, a function of the observation, beside others on unseen traces.

Needs ``pip install 'bufgym[arrow]'``.
"""

import numpy as np

import bufgym

# "queue: q_i / B" is a name and how it is computed.
FEATURES = [text.split(":")[0] for text in bufgym.FEATURE_NAMES]


def share_of_need(observation):
    """More α for a port the more has arrived there since the last decision, [ports, 8, 5] to [ports]."""
    enqueued = observation[:, -1, FEATURES.index("enqueued")]
    return np.clip(2.0 * enqueued - 0.5, -1.0, 1.0)


result = bufgym.evaluate([share_of_need, "dt:alpha=8"], "ndt-16x1g", traces=8, seed=1)
print(result)
columns = ["policy", "mean_fct_ms", "ratio_to_dt.mean", "ratio_to_dt.low", "ratio_to_dt.high", "drops"]
print(result.policies.select(columns))

one = bufgym.simulate(share_of_need, "ndt-16x1g", seed=1, timeline_us=100)
print(f"{one.flows.num_rows} flows, mean FCT {one.summary['mean_fct_ms']:.3f} ms")
