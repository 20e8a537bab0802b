"""Search for the best mechanism, with a certified lower bound on its loss.

A design passes through these modules in order::

    problem       check what is asked and put it into arrays
    closed_forms  answer by a theorem where one covers the case
    constraints   list the rows of privacy and of every property
    program       write the linear program of the problem
    reductions    shrink and scale it; bring solutions and multipliers back
    solver        call Clarabel or HiGHS
    bound         turn the multipliers into a certified lower bound
    polish        make the solver's matrix private and stochastic
    search        widen the program until objective and bound meet
    conflicts     where nothing is feasible, name the demands that clash
    design        the public function and its result

`matrix_program` holds the linear program that `program` writes and `reductions` shrinks;
`tolerances` holds every tolerance.
"""
