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
from isotone.reading.questions import Answers as Answers
from isotone.reading.questions import Question as Question
from isotone.reading.questions import order_of as order_of
from isotone.reading.sources import DataFile as DataFile
from isotone.release import plan_waves as plan_waves
from isotone.release import release_counts as release_counts
from isotone.release import release_curve as release_curve
from isotone.release import release_surface as release_surface
from isotone.release import release_table as release_table
from isotone.release import verify as verify
from isotone.release.reader_questions import combine as combine
from isotone.release.result import Release as Release
from isotone.release.result import load_release as load_release

__all__: list[str]
__version__: str
