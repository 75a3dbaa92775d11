from isotone import counts as counts
from isotone import curves as curves
from isotone import noise as noise
from isotone import order as order
from isotone import tables as tables
from isotone.errors import BudgetError as BudgetError
from isotone.errors import InputError as InputError
from isotone.errors import IsotoneError as IsotoneError
from isotone.errors import LedgerError as LedgerError
from isotone.errors import OrderError as OrderError
from isotone.errors import SpecError as SpecError
from isotone.ledger.ledger import Ledger as Ledger
from isotone.order.poset import Poset as Poset
from isotone.privacy.guarantee import Guarantee as Guarantee
from isotone.reading.questions import Question as Question
from isotone.reading.questions import order_of as order_of
from isotone.reading.sources import DataFile as DataFile
from isotone.release.description import Answers as Answers
from isotone.release.description import Unit as Unit
from isotone.release.kinds.counts.description import Counts as Counts
from isotone.release.kinds.curve.description import Curve as Curve
from isotone.release.kinds.curve.description import Labels as Labels
from isotone.release.kinds.distribution.description import Distribution as Distribution
from isotone.release.kinds.series.description import Series as Series
from isotone.release.kinds.survival.description import Survival as Survival
from isotone.release.kinds.table.description import Table as Table
from isotone.release.result import Release as Release
from isotone.release.result import combine as combine
from isotone.release.result import load_release as load_release
from isotone.release.spec import Spec as Spec
from isotone.release.spec import load_spec as load_spec
from isotone.release.verify import verify as verify
from isotone.release.whatif import plan_waves as plan_waves

__all__: list[str]
__version__: str
