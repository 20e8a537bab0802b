# The one list of these names: the program reads it, and so do type checkers.

# Cormode, Kulkarni and Srivastava (2018)
from tallyveil.evaluate.distances import released_share_variance as released_share_variance
from tallyveil.loss import paper_loss as paper_loss
from tallyveil.papers.cormode.choose import Choice as Choice
from tallyveil.papers.cormode.choose import choose as choose
from tallyveil.papers.croft.smooth import cauchy as cauchy
from tallyveil.papers.croft.smooth import smooth_sensitivity as smooth_sensitivity

# Gupte and Sundararajan (2010)
from tallyveil.papers.gupte.oblivious import oblivious as oblivious

# Kohli and Laskowski (2026)
from tallyveil.papers.kohli import polytope as polytope
from tallyveil.papers.kohli import scales as scales
from tallyveil.papers.kohli.greedy import best_fixed_point as best_fixed_point
from tallyveil.papers.kohli.greedy import greedy_fixed_point as greedy_fixed_point
from tallyveil.papers.kohli.histogram import distribution_of_counts as distribution_of_counts
from tallyveil.papers.kohli.histogram import histogram_of_counts as histogram_of_counts
from tallyveil.papers.kohli.pipeline import privatize_counts as privatize_counts
from tallyveil.papers.kohli.privatizers import privatize_distribution as privatize_distribution
from tallyveil.papers.kohli.unfixed import unfixed_optimum as unfixed_optimum
from tallyveil.papers.named import am as am
from tallyveil.papers.named import fm as fm
from tallyveil.papers.named import ucm as ucm

# Croft, Sack and Shi (2020)
from tallyveil.papers.named import variant1 as variant1
from tallyveil.papers.named import variant2 as variant2
from tallyveil.papers.named import wm as wm
from tallyveil.publish.budget_split import split_budget as split_budget
from tallyveil.reading.derive import exact_derivation as exact_derivation
