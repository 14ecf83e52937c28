"""Median nanoseconds per decision: bench.py GRAPH OBSERVATIONS PORTS."""
import sys
import time

import numpy
import onnxruntime

graph, path, ports = sys.argv[1:]
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
options.inter_op_num_threads = 1
session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
observations = numpy.fromfile(path, numpy.float32).reshape(-1, 1, int(ports), 8, 5)
name = session.get_inputs()[0].name
rounds = []
for _ in range(11):
    start = time.perf_counter_ns()
    for observation in observations:
        session.run(None, {name: observation})
    rounds.append((time.perf_counter_ns() - start) / len(observations))
print(sorted(rounds)[5])
