# check.py
import ribbon
from trapezoid import Trapezoid

from noslip.testing import check_integrator, check_system

check_system(ribbon)
check_integrator(Trapezoid)
print("both keep what they promise")
