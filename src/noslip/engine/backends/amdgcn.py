"""Kernels for AMD's GPUs, as text: the modules of `ptx`, made into assembly by LLVM's own back end.

Nothing in noslip loads them yet. A kernel is meant for groups of 32 threads.
"""

from __future__ import annotations

import re

from noslip.engine.backends.native import run_passes
from noslip.engine.backends.ptx import WARP
from noslip.engine.program import CannotTranslate

REGISTER = "llvm.nvvm.read.ptx.sreg.{}.x"
OWN = {"ctaid": "llvm.amdgcn.workgroup.id.x", "tid": "llvm.amdgcn.workitem.id.x"}


def assembled(text: str, chip: str = "gfx90a") -> str:
    """The assembly of a module of `ptx`, for a chip by LLVM's name of it."""
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple("amdgcn-amd-amdhsa").create_target_machine(cpu=chip, opt=3)
    module = llvm.parse_assembly(_translated(text))
    options = llvm.create_pipeline_tuning_options(speed_level=1)
    options.slp_vectorization = options.loop_vectorization = options.loop_unrolling = False
    run_passes(module, llvm.create_pass_builder(machine, options))
    if " alloca " in str(module):  # of another kind of memory there, which the text does not name
        raise CannotTranslate("a kernel for AMD's GPUs must fit into registers, but this one has an array")
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    return str(machine.emit_assembly(module))


def _translated(text: str) -> str:
    """With AMD's words for an entry and for the number of a thread."""
    size = re.escape(REGISTER.format("ntid"))
    text = re.sub(rf"declare i32 @{size}\(\)\n?", "", text)
    text = re.sub(rf"call i32 @{size}\(\)", f"add i32 {WARP}, 0", text)
    for name, own in OWN.items():
        text = text.replace(REGISTER.format(name), own)
    return text.replace("define ptx_kernel", "define amdgpu_kernel")
