from isotone.order.decomposition import Leaf as Leaf
from isotone.order.decomposition import Node as Node
from isotone.order.decomposition import Parallel as Parallel
from isotone.order.decomposition import Prime as Prime
from isotone.order.decomposition import Series as Series
from isotone.order.isotonic import project as project
from isotone.order.isotonic import project_covariance as project_covariance
from isotone.order.poset import Poset as Poset

__all__: list[str]
