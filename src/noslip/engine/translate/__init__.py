"""From a JAX function to a scalar program: its traced form is read here, and nowhere else.

`jaxprs` knows how traced functions nest, `lower` goes through one, `arrays` and `elementwise` say what each
operation does to arrays of node numbers, `functions` writes elementary functions as arithmetic, `solves`
linear solves (`sparse` those with many zeros), `sweeps` derivatives; `builder` simplifies nodes as they are
made and `placement` puts them into blocks. `words` names a traced function for the cache on disk;
`rounding` says how many digits one has.
"""

from noslip.engine.translate.dependence import depends_on
from noslip.engine.translate.lower import translate

__all__ = ["depends_on", "translate"]
