"""Table 1 of Gupte and Sundararajan (2010): one geometric release serves every consumer best.

Run: python examples/consumers.py
"""

from __future__ import annotations

import math

import tallyveil as tv


def main() -> dict[str, float]:
    query = tv.Query.count(3)
    deployed = tv.geometric(query, repr(math.log(4)))

    everybody = tv.Consumer("absolute").respond(deployed)
    print("A consumer who fears the worst, absolute loss, knowing nothing:")
    print(everybody.remap.round(4))
    print(f"  worst-case loss {everybody.loss:.6f} = 168/415; raw {deployed.worst_loss():.6f}")
    print(f"  {everybody.note} Certified gap {everybody.certificate.gap:.1e}.")

    informed = tv.Consumer("absolute", side_information=[2, 3]).respond(deployed)
    print(f"One who knows that the count is 2 or 3: {informed.loss:.6f}")

    believer = tv.Consumer("squared", prior=("binomial", 0.2)).respond(deployed)
    print(f"A Bayesian with squared loss and a binomial prior: {believer.loss:.6f}")
    print(f"  released -> guess: {believer.remap.argmax(axis=1).tolist()}")
    return {"everybody": everybody.loss, "informed": informed.loss, "believer": believer.loss}


if __name__ == "__main__":
    main()
