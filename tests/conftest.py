"""Property tests repeat themselves in the normal run, and explore in `make test-slow`."""

import os

from hypothesis import settings

settings.register_profile("steady", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None)
settings.load_profile(os.environ.get("TALLYVEIL_HYPOTHESIS", "steady"))
