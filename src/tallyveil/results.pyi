# The one list of these names: the program reads it, and so do type checkers.

from tallyveil.matrix import WorstPair as WorstPair
from tallyveil.budget.accounting import Account as Account
from tallyveil.budget.entries import Entry as Entry
from tallyveil.certified.ladder import Rung as Rung
from tallyveil.certified.transport import ImplicitTransport as ImplicitTransport
from tallyveil.evaluate import Row as Row
from tallyveil.evaluate import CountErrors as CountErrors
from tallyveil.mechanisms.frontier import Frontier as Frontier
from tallyveil.check.findings import Finding as Finding
from tallyveil.reading.posterior import ConfidenceSets as ConfidenceSets
from tallyveil.reading.consumer import BoundCertificate as BoundCertificate
from tallyveil.reading.consumer import Tie as Tie
from tallyveil.reading.derive import Derivability as Derivability
from tallyveil.reading.derive import Obstacle as Obstacle
from tallyveil.reading.derive import Separation as Separation
from tallyveil.reading.interpret import Interpretation as Interpretation
from tallyveil.reading.unbiased import Estimate as Estimate
from tallyveil.reading.unbiased import UnbiasedEstimator as UnbiasedEstimator
