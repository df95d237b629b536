"""The bibliography: every work that the package names, by the key under which docstrings and pages cite it.

The `reference` of an integrator is a list of keys with places in the works, separated by semicolons, such as
"McLachlan, Perlmutter 2006; CFHM section 4.1.3". The site's page of references is made from it, and
CITATION.cff lists the papers as they are here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

PAPERS = ("JS", "LMS", "CFHM", "FBO", "PP")
"""The works that the package implements whole."""


@dataclass(frozen=True)
class Work:
    """A paper or book; `authors` have their family names first, `place` follows the journal's name."""

    authors: tuple[str, ...]
    title: str
    journal: str
    place: str
    year: int
    doi: str = ""

    @property
    def text(self) -> str:
        """The full reference in one line."""
        names = [" ".join(reversed(name.split(", "))) for name in self.authors]
        who = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
        where = f"{self.journal} {self.place}".strip()
        return f"{who}: {self.title}. {where} ({self.year})."

    @property
    def url(self) -> str:
        """Where the work is found, if it has a DOI."""
        return f"https://doi.org/{self.doi}" if self.doi else ""


_BIT = "BIT Numerical Mathematics"
_DCDS = "Discrete and Continuous Dynamical Systems"
_JGM = "Journal of Geometric Mechanics"
_JNS = "Journal of Nonlinear Science"

WORKS: Mapping[str, Work] = {
    "JS": Work(
        ("Jiménez, Fernando", "Scheurle, Jürgen"),
        "On the discretization of nonholonomic dynamics in R^n",
        _JGM, "7 (1), 43-80", 2015, "10.3934/jgm.2015.7.43",
    ),
    "LMS": Work(
        ("de León, Manuel", "Martín de Diego, David", "Santamaría-Merino, Aitor"),
        "Geometric integrators and nonholonomic mechanics",
        "Journal of Mathematical Physics", "45 (3), 1042-1064", 2004,
    ),
    "CFHM": Work(
        ("Celledoni, Elena", "Farré Puiggalí, Marta", "Høiseth, Eirik Hoel", "Martín de Diego, David"),
        "Energy-preserving integrators applied to nonholonomic systems",
        _JNS, "29, 1523-1562", 2019,
    ),
    "FBO": Work(
        ("Fernandez, Oscar E.", "Bloch, Anthony M.", "Olver, Peter J."),
        "Variational integrators for Hamiltonizable nonholonomic systems",
        _JGM, "4 (2), 137-163", 2012, "10.3934/jgm.2012.4.137",
    ),
    "PP": Work(
        ("Popescu, Paul", "Popescu, Marcela"),
        "On discrete geometry of non-holonomic spaces",
        "BSG Proceedings", "22, 69-74", 2015,
    ),
    "Basu-Mandal, Chatterjee, Papadopoulos 2007": Work(
        ("Basu-Mandal, Pradipta", "Chatterjee, Anindya", "Papadopoulos, Jim M."),
        "Hands-free circular motions of a benchmark bicycle",
        "Proceedings of the Royal Society A", "463 (2084), 1983-2003", 2007, "10.1098/rspa.2007.1849",
    ),
    "Biscani, Izzo 2021": Work(
        ("Biscani, Francesco", "Izzo, Dario"),
        "Revisiting high-order Taylor methods for astrodynamics and celestial mechanics",
        "Monthly Notices of the Royal Astronomical Society", "504 (2), 2614-2628", 2021,
        "10.1093/mnras/stab1032",
    ),
    "Boldo, Melquiond 2008": Work(
        ("Boldo, Sylvie", "Melquiond, Guillaume"),
        "Emulation of a FMA and correctly rounded sums: proved algorithms using rounding to odd",
        "IEEE Transactions on Computers", "57 (4), 462-471", 2008, "10.1109/TC.2007.70819",
    ),
    "Chaplygin 1911": Work(
        ("Chaplygin, S. A.",),
        "On the theory of the motion of nonholonomic systems. The reducing-multiplier theorem",
        "Matematicheskii Sbornik",
        "28 (2), 303-314; in English in Regular and Chaotic Dynamics 13 (4), 369-376 (2008)", 1911,
    ),
    "Chaplygin 1903": Work(
        ("Chaplygin, S. A.",),
        "On a ball's rolling on a horizontal plane",
        "Matematicheskii Sbornik",
        "24 (1), 139-168; in English in Regular and Chaotic Dynamics 7 (2), 131-148 (2002)", 1903,
    ),
    "Cohen, Hairer 2011": Work(
        ("Cohen, David", "Hairer, Ernst"),
        "Linear energy-preserving integrators for Poisson systems",
        _BIT, "51 (1), 91-101", 2011, "10.1007/s10543-011-0310-z",
    ),
    "Cortes, Martinez 2001": Work(
        ("Cortés, Jorge", "Martínez, Sonia"),
        "Non-holonomic integrators",
        "Nonlinearity", "14 (5), 1365-1392", 2001, "10.1088/0951-7715/14/5/322",
    ),
    "Gonzalez 1996": Work(
        ("Gonzalez, O.",),
        "Time integration and discrete Hamiltonian systems",
        _JNS, "6 (5), 449-467", 1996, "10.1007/BF02440162",
    ),
    "Hairer 2000": Work(
        ("Hairer, Ernst",),
        "Symmetric projection methods for differential equations on manifolds",
        _BIT, "40 (4), 726-734", 2000,
    ),
    "Hairer, Soderlind 2005": Work(
        ("Hairer, Ernst", "Soderlind, Gustaf"),
        "Explicit, time reversible, adaptive step size control",
        "SIAM Journal on Scientific Computing", "26 (6), 1838-1851", 2005, "10.1137/040606995",
    ),
    "Hairer, Lubich, Wanner 2006": Work(
        ("Hairer, Ernst", "Lubich, Christian", "Wanner, Gerhard"),
        "Geometric numerical integration: structure-preserving algorithms for ordinary differential "
        "equations",
        "Springer Series in Computational Mathematics", "31, second edition", 2006, "10.1007/3-540-30666-8",
    ),
    "Harten et al. 1983": Work(
        ("Harten, Amiram", "Lax, Peter D.", "van Leer, Bram"),
        "On upstream differencing and Godunov-type schemes for hyperbolic conservation laws",
        "SIAM Review", "25 (1), 35-61", 1983, "10.1137/1025002",
    ),
    "Itoh, Abe 1988": Work(
        ("Itoh, Toshiaki", "Abe, Kanji"),
        "Hamiltonian-conserving discrete canonical equations based on variational difference quotients",
        "Journal of Computational Physics", "76 (1), 85-102", 1988, "10.1016/0021-9991(88)90132-5",
    ),
    "Jay 1996": Work(
        ("Jay, Laurent O.",),
        "Symplectic partitioned Runge-Kutta methods for constrained Hamiltonian systems",
        "SIAM Journal on Numerical Analysis", "33 (1), 368-387", 1996, "10.1137/0733019",
    ),
    "Jay 2003": Work(
        ("Jay, Laurent O.",),
        "Solution of index 2 implicit differential-algebraic equations by Lobatto Runge-Kutta methods",
        _BIT, "43 (1), 93-106", 2003, "10.1023/A:1023696822355",
    ),
    "Kahan 1965": Work(
        ("Kahan, William",),
        "Further remarks on reducing truncation errors",
        "Communications of the ACM", "8 (1), 40", 1965, "10.1145/363707.363723",
    ),
    "Kahan, Li 1997": Work(
        ("Kahan, William", "Li, Ren-Cang"),
        "Composition constants for raising the orders of unconventional schemes for ordinary differential "
        "equations",
        "Mathematics of Computation", "66 (219), 1089-1099", 1997, "10.1090/S0025-5718-97-00873-9",
    ),
    "Kane, Levinson 1982": Work(
        ("Kane, Thomas R.", "Levinson, David A."),
        "Realistic mathematical modeling of the rattleback",
        "International Journal of Non-Linear Mechanics", "17 (3), 175-186", 1982,
    ),
    "Krishnaprasad, Tsakiris 2001": Work(
        ("Krishnaprasad, P. S.", "Tsakiris, Dimitris P."),
        "Oscillations, SE(2)-snakes and motion control: a study of the roller racer",
        "Dynamical Systems", "16 (4), 347-397", 2001, "10.1080/14689360110090424",
    ),
    "Kutta 1901": Work(
        ("Kutta, Wilhelm",),
        "Beitrag zur näherungsweisen Integration totaler Differentialgleichungen",
        "Zeitschrift für Mathematik und Physik", "46, 435-453", 1901,
    ),
    "McLachlan, Perlmutter 2006": Work(
        ("McLachlan, Robert I.", "Perlmutter, Matthew"),
        "Integrators for nonholonomic mechanical systems",
        _JNS, "16 (4), 283-328", 2006, "10.1007/s00332-005-0698-1",
    ),
    "McLachlan et al. 1999": Work(
        ("McLachlan, Robert I.", "Quispel, G. R. W.", "Robidoux, Nicolas"),
        "Geometric integration using discrete gradients",
        "Philosophical Transactions of the Royal Society A", "357 (1754), 1021-1045", 1999,
        "10.1098/rsta.1999.0363",
    ),
    "Meijaard, Papadopoulos, Ruina, Schwab 2007": Work(
        ("Meijaard, J. P.", "Papadopoulos, Jim M.", "Ruina, Andy", "Schwab, A. L."),
        "Linearized dynamics equations for the balance and steer of a bicycle: a benchmark and review",
        "Proceedings of the Royal Society A", "463 (2084), 1955-1982", 2007, "10.1098/rspa.2007.1857",
    ),
    "Modin, Verdier 2014": Work(
        ("Modin, Klas", "Verdier, Olivier"),
        "Integrability of nonholonomically coupled oscillators",
        _DCDS, "34 (3), 1121-1130", 2014, "10.3934/dcds.2014.34.1121",
    ),
    "Modin, Verdier 2020": Work(
        ("Modin, Klas", "Verdier, Olivier"),
        "What makes nonholonomic integrators work?",
        "Numerische Mathematik", "145 (2), 405-435", 2020, "10.1007/s00211-020-01126-y",
    ),
    "Moeller 1965": Work(
        ("Møller, Ole",),
        "Quasi double-precision in floating point addition",
        "BIT", "5, 37-50", 1965, "10.1007/BF01975722",
    ),
    "Neimark, Fufaev 1972": Work(
        ("Neimark, Ju. I.", "Fufaev, N. A."),
        "Dynamics of nonholonomic systems",
        "Translations of Mathematical Monographs", "33, American Mathematical Society", 1972,
    ),
    "Norton et al. 2015": Work(
        ("Norton, Richard A.", "McLaren, David I.", "Quispel, G. R. W.", "Stern, Ari", "Zanna, Antonella"),
        "Projection methods and discrete gradient methods for preserving first integrals of ODEs",
        _DCDS, "35 (5), 2079-2098", 2015, "10.3934/dcds.2015.35.2079",
    ),
    "Ostrowski, Burdick, Lewis, Murray 1995": Work(
        ("Ostrowski, James", "Burdick, Joel", "Lewis, Andrew D.", "Murray, Richard M."),
        "The mechanics of undulatory locomotion: the mixed kinematic and dynamic case",
        "IEEE International Conference on Robotics and Automation", "1945-1951", 1995,
    ),
    "Suzuki 1990": Work(
        ("Suzuki, Masuo",),
        "Fractal decomposition of exponential operators with applications to many-body theories and Monte "
        "Carlo simulations",
        "Physics Letters A", "146 (6), 319-323", 1990, "10.1016/0375-9601(90)90962-N",
    ),
    "Veselov, Veselova 1988": Work(
        ("Veselov, A. P.", "Veselova, L. E."),
        "Integrable nonholonomic systems on Lie groups",
        "Mathematical Notes", "44, 810-819", 1988,
    ),
}  # fmt: skip


def keys(reference: str) -> list[str]:
    """The keys that a `reference` names; one that is not in the bibliography is an error."""
    found = []
    for part in reference.split(";"):
        place = part.strip()
        starts = [key for key in WORKS if re.match(rf"{re.escape(key)}(?!\w)", place)]
        if not starts:
            raise ValueError(f"a reference must begin with a key of noslip.references, but is '{place}'")
        found.append(max(starts, key=len))
    return found


def cited(text: str) -> set[str]:
    """What a page or docstring cites by name and year, whether it is in the bibliography or not."""
    name = r"[A-Z][a-z]+[A-Z]?[a-z]*(?:-[A-Z][a-z]+)?"
    return set(re.findall(rf"\b{name}(?:, {name})*(?: et al\.)? (?:18|19|20)\d\d\b", text))
