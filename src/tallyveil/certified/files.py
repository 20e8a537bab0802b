import json
from pathlib import Path

from tallyveil.certified.load import load
from tallyveil.mechanism import Mechanism


def read_mechanism(path, query=None, epsilon=None):
    path = Path(path)
    if path.suffix == ".csv":
        return Mechanism.from_csv(path, query, epsilon)
    t = path.read_text()
    if json.loads(t).get("format") == "tallyveil-certified-mechanism":
        return load(path)
    return Mechanism.from_json(t)
