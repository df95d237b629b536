"""A compiler of JAX functions to scalar code; it knows nothing of mechanics.

    JAX function -> translate/ -> program.py -> backends/, with memory.py between arrays and compiled code

`translate` traces a function and turns it into a `Program`: straight blocks of scalar operations, loops and
small dense solves, simplified on the way. `memory.Table` lays pytrees of arrays out in slots. A backend is a
`Visitor` of programs:

    numpy_rows           runs one at once, over many rows, or writes a short one as Python
    often                runs one that is asked again and again, by NumPy first and then by machine code
    llvm_text, native    write it as LLVM IR, for scalars or lanes, and compile it for this machine
    ptx, cuda            write it as a kernel of a GPU, and load it there
    amdgcn               makes assembly for AMD's GPUs of the same text; nothing loads it yet
    wasm                 makes a module for pages of that text
    heyoka_expressions   gives expressions for a Taylor integrator
    sympy_formulas       gives formulas to be read
"""
