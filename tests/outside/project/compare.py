# compare.py
import ribbon
from trapezoid import Trapezoid

from noslip.analysis import work_precision
from noslip.integrators import SemiImplicitDLA

methods, state = (Trapezoid(), SemiImplicitDLA()), ribbon.typical_state()
points = work_precision.work_precision(ribbon.system(), methods, *state, t_end=10.0, steps=(100, 200, 400))
print(work_precision.as_markdown(points))
