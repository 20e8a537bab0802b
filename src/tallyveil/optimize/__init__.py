"""Search for the best mechanism, with a certified lower bound on its loss.

A design passes through these modules in order::

    problem       check options and put them into arrays; list rows; hold every tolerance
    closed_forms  answer by a theorem where one covers the case
    program       write the linear program of the problem, shrink and scale it; bring solutions back
    solver        call Clarabel or HiGHS; `path_solver` for the whole program of a count
    bound         turn the multipliers into a certified lower bound
    polish        make the solver's matrix private and stochastic
    search        widen the program until objective and bound meet, or name demands that clash
    design        the public function and its result
"""
