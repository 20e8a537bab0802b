# The one list of public names, by topic: the program reads it, and so do type checkers.

from tallyveil._version import __version__ as __version__

# Publish a table
from tallyveil.release.privatize import privatize as privatize
from tallyveil.release.privatize import privatize_levels as privatize_levels
from tallyveil.release.options import About as About
from tallyveil.release.options import Budget as Budget
from tallyveil.release.options import Counts as Counts
from tallyveil.release.options import Microdata as Microdata
from tallyveil.release.options import Output as Output
from tallyveil.release.options import ReleaseOptions as ReleaseOptions
from tallyveil.tables.source import Source as Source
from tallyveil.release.options import Unit as Unit
from tallyveil.release.methods.auto import Auto as Auto
from tallyveil.release.methods.design import DesignMethod as DesignMethod
from tallyveil.release.methods.design import Fair as Fair
from tallyveil.release.methods.geometric import Geometric as Geometric
from tallyveil.release.methods.hierarchy import Hierarchy as Hierarchy
from tallyveil.release.methods.margins import Margins as Margins
from tallyveil.release.methods.design import MechanismFile as MechanismFile
from tallyveil.release.methods.preserve import Preserve as Preserve
from tallyveil.release.methods.strata import Strata as Strata
from tallyveil.release.release import Release as Release
from tallyveil.check.package import check_package as check_package
from tallyveil.budget.ledger import Ledger as Ledger
from tallyveil.budget.accounting import compose as compose
from tallyveil.budget.accounting import share_epsilon as share_epsilon
from tallyveil.budget.entries import Debit as Debit
from tallyveil.budget.entries import Stage as Stage

# Read a release
from tallyveil.reading.interpret import interpret as interpret
from tallyveil.reading.posterior import posterior as posterior
from tallyveil.reading.posterior import Posterior as Posterior
from tallyveil.reading.posterior import confidence_sets as confidence_sets
from tallyveil.reading.unbiased import unbiased as unbiased
from tallyveil.release.release import export as export
from tallyveil.release.groups import estimate_total as estimate_total
from tallyveil.reading.unbiased import estimate_mean as estimate_mean
from tallyveil.reading.consumer import Consumer as Consumer
from tallyveil.reading.consumer import Response as Response

# Choose a mechanism
from tallyveil.query import Query as Query
from tallyveil.neighbours import Neighbours as Neighbours
from tallyveil.mechanism import Mechanism as Mechanism
from tallyveil.mechanisms.geometric import geometric as geometric
from tallyveil.mechanisms.exponential import fair as fair
from tallyveil.mechanisms.exponential import randomized_response as randomized_response
from tallyveil.mechanisms.exponential import uniform as uniform
from tallyveil.mechanisms.geometric import canonical as canonical
from tallyveil.mechanisms.exponential import exponential as exponential
from tallyveil.mechanisms.additive import laplace as laplace
from tallyveil.mechanisms.additive import staircase as staircase
from tallyveil.mechanisms.additive import discrete_gaussian as discrete_gaussian
from tallyveil.mechanisms.transport import transport as transport
from tallyveil.certified.transport import implicit_transport as implicit_transport
from tallyveil.mechanisms.frontier import frontier as frontier
from tallyveil.loss import weigh_loss as weigh_loss
from tallyveil.optimize.design import design as design
from tallyveil.optimize.design import Design as Design

# Compare
from tallyveil.evaluate import compare as compare
from tallyveil.evaluate import Comparison as Comparison
from tallyveil.reading.precision import accuracy as accuracy
from tallyveil.reading.precision import chance_within as chance_within
from tallyveil.reading.precision import epsilon_for as epsilon_for
from tallyveil.reading.derive import derivability as derivability
from tallyveil.reading.derive import derivation as derivation
from tallyveil.reading.derive import is_derivable as is_derivable
from tallyveil.reading.derive import dominating_remap as dominating_remap
from tallyveil.evaluate import count_errors as count_errors
from tallyveil.evaluate import kolmogorov_smirnov as kolmogorov_smirnov
from tallyveil.evaluate import total_variation as total_variation
from tallyveil.evaluate import wasserstein as wasserstein
from tallyveil.mechanisms.frontier import bound_distribution_error as bound_distribution_error

# Prove and draw
from tallyveil.certified.certify import certify as certify
from tallyveil.certified.certify import certify_geometric as certify_geometric
from tallyveil.certified.certify import certify_noise as certify_noise
from tallyveil.certified.mechanism import CertifiedMechanism as CertifiedMechanism
from tallyveil.certified.mechanism import CertifiedGeometric as CertifiedGeometric
from tallyveil.certified.mechanism import CertifiedNoise as CertifiedNoise
from tallyveil.certified.ladder import Ladder as Ladder
from tallyveil.certified.load import load as load
from tallyveil.proof.verify import verify as verify
from tallyveil.proof.ratios import Verdict as Verdict
from tallyveil.proof.repair import repair as repair
from tallyveil.proof.repair import Repair as Repair
from tallyveil.sampling.entropy import Entropy as Entropy
from tallyveil.sampling.entropy import SeededNotPrivate as SeededNotPrivate
from tallyveil.sampling.noise import geometric_noise as geometric_noise
from tallyveil.sampling.noise import discrete_gaussian_noise as discrete_gaussian_noise

# More names
from tallyveil import papers as papers
from tallyveil import results as results
from tallyveil import opendp as opendp
from tallyveil import dp_accounting as dp_accounting

# Errors
from tallyveil.errors import TallyveilError as TallyveilError
from tallyveil.errors import ArgumentError as ArgumentError
from tallyveil.errors import UsageError as UsageError
from tallyveil.errors import QueryError as QueryError
from tallyveil.errors import MechanismError as MechanismError
from tallyveil.errors import InfeasibleError as InfeasibleError
from tallyveil.errors import CertificationError as CertificationError
from tallyveil.errors import VerificationError as VerificationError
from tallyveil.errors import TableError as TableError
from tallyveil.errors import LedgerError as LedgerError
from tallyveil.errors import BudgetError as BudgetError
from tallyveil.errors import PackageError as PackageError
from tallyveil.errors import MissingExtraError as MissingExtraError
