"""M/M/k in SimPy, as its own examples write it: a process per customer and a Resource.

Arguments: servers, customers, seed, load. Prints one JSON object.
"""

import json
import random
import sys
import time

import simpy


def main() -> None:
    servers, customers, seed = (int(argument) for argument in sys.argv[1:4])
    load = float(sys.argv[4])
    draw = random.Random(seed).expovariate
    env = simpy.Environment()
    desk = simpy.Resource(env, capacity=servers)
    waits = []

    def customer():
        arrived = env.now
        with desk.request() as turn:
            yield turn
            waits.append(env.now - arrived)
            yield env.timeout(draw(1.0))

    def arrivals():
        for _ in range(customers):
            yield env.timeout(draw(servers * load))
            env.process(customer())

    env.process(arrivals())
    started = time.perf_counter()
    env.run()
    seconds = time.perf_counter() - started
    # SimPy numbers whatever it schedules: its own events are more than arrivals and completions.
    own_events = next(env._eid)
    print(json.dumps({"seconds": seconds, "events": 2 * customers, "ownEvents": own_events, "meanWait": sum(waits) / len(waits), "version": simpy.__version__}))


main()
