# The one list of these names: the program reads it, and so do type checkers.

# Cormode, Kulkarni and Srivastava (2018)
from tallyveil.papers.cormode import compute_gm_cost as compute_gm_cost
from tallyveil.papers.cormode import compute_wm_cost as compute_wm_cost
from tallyveil.papers.cormode import Choice as Choice
from tallyveil.papers.cormode import choose as choose
from tallyveil.papers.cormode import am as am
from tallyveil.papers.cormode import fm as fm
from tallyveil.papers.cormode import ucm as ucm
from tallyveil.papers.cormode import wm as wm
from tallyveil.papers.cormode import paper_loss as paper_loss

# Croft, Sack and Shi (2020)
from tallyveil.papers.croft import is_minimal as is_minimal
from tallyveil.papers.croft import cauchy as cauchy
from tallyveil.papers.croft import smooth_sensitivity as smooth_sensitivity
from tallyveil.papers.croft import variant1 as variant1
from tallyveil.papers.croft import variant2 as variant2

# Gupte and Sundararajan (2010)
from tallyveil.papers.gupte import oblivious as oblivious
from tallyveil.papers.gupte import has_lemma_5_pattern as has_lemma_5_pattern

# Kohli and Laskowski (2026)
from tallyveil.papers.kohli import polytope as polytope
from tallyveil.papers.kohli.pipeline import split_budget as split_budget
from tallyveil.papers.kohli.greedy import best_fixed_point as best_fixed_point
from tallyveil.papers.kohli.greedy import greedy_fixed_point as greedy_fixed_point
from tallyveil.papers.kohli.privatizers import distribution_of_counts as distribution_of_counts
from tallyveil.papers.kohli.privatizers import histogram_of_counts as histogram_of_counts
from tallyveil.papers.kohli.pipeline import privatize_counts as privatize_counts
from tallyveil.papers.kohli.pipeline import released_share_variance as released_share_variance
from tallyveil.papers.kohli.privatizers import privatize_distribution as privatize_distribution
from tallyveil.papers.kohli.greedy import unfixed_optimum as unfixed_optimum

# Gupte and Sundararajan (2010), Theorem 2
from tallyveil.reading.derive import exact_derivation as exact_derivation
