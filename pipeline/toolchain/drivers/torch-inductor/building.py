"""What AOTInductor needs to compile, and what is done to what it made: nothing of the machine that compiles may get into an
engine."""

import glob
import os
import shutil
import stat
import sys
import zipfile

from protocol import Refused

# Levels of x86-64, and the instructions that Inductor writes vector code for, by the name of its class.
LEVELS = {"x86-64": None, "x86-64-v2": None, "x86-64-v3": "VecAVX2", "x86-64-v4": "VecAVX512"}
LOWEST = "x86-64"
# Flags of Inductor for instructions, which the level takes the place of.
INSTRUCTIONS = "-march=*|-mcpu=*|-mavx*|-mfma*|-mf16c*|-mamx*"
# As in the driver of tvm: an object with nothing but a property, GNU_PROPERTY_X86_ISA_1_NEEDED of the x86-64 psABI. The dynamic
# linker does not load it on a lesser processor, and mlpromote reads it.
LEVEL = """
	.section .note.gnu.property,"a"
	.p2align 3
	.long 4, 16, 5
	.asciz "GNU"
	.long 0xc0008002, 4, {}, 0
	.section .note.GNU-stack,"",@progbits
"""
COMPILER = """#!/bin/sh
linking=
for argument; do
	shift
	case $argument in
	{instructions}) ;;
	-shared) linking=yes; set -- "$@" "$argument" ;;
	*) set -- "$@" "$argument" ;;
	esac
done
[ -z "$linking" ] || set -- "$@" {level} -Wl,--build-id=none
exec {program} "$@" -march={march} -g0 -ffile-prefix-map={folder}=.
"""


def environment():
    """What PyTorch reads when it is imported, before it is."""
    here = os.getcwd()
    os.environ.update(
        CXX=os.path.join(here, "c++"), TORCHINDUCTOR_CACHE_DIR=os.path.join(here, "inductor"), TRITON_CACHE_DIR=os.path.join(here, "triton"),
        TORCHINDUCTOR_COMPILE_THREADS="1", USER="mlpromote",
    )  # fmt: skip
    if os.environ.get("CUDA_VISIBLE_DEVICES") == "":
        return
    packages = glob.glob(os.path.join(sys.prefix, "lib", "python3*", "site-packages", "nvidia", "cu1[0-9]"))
    for folder in ("/usr/local/cuda", *glob.glob("/usr/local/cuda-*"), *packages):
        if os.path.exists(os.path.join(folder, "include", "crt", "host_defines.h")):
            os.environ["CUDA_HOME"] = folder
            break
    os.makedirs("libraries", exist_ok=True)
    for folder in [*os.environ.get("LD_LIBRARY_PATH", "").split(":"), "/usr/lib/x86_64-linux-gnu", "/usr/lib64"]:
        library = os.path.join(folder, "libcuda.so.1")
        if folder and os.path.exists(library):
            os.symlink(library, os.path.join("libraries", "libcuda.so"))  # the name that the linker looks for
            os.environ.update(LIBRARY_PATH=os.path.join(here, "libraries"), TRITON_LIBCUDA_PATH=folder)
            break


def compiler(level):
    """Puts the compiler of the system in place, with the instructions of the level and without what says where it ran."""
    program = shutil.which("g++")
    if program is None:
        raise Refused("unavailable", "there is no g++, the compiler of the system, which compiles engines of torch-inductor: on Debian: apt-get install g++")
    here = os.getcwd()
    with open("level.s", "w", encoding="ascii") as f:
        f.write(LEVEL.format(1 << list(LEVELS).index(level)))
    script(COMPILER.format(instructions=INSTRUCTIONS, level=os.path.join(here, "level.s"), program=program, march=level, folder=here))
    vectors(LEVELS[level])


def script(text):
    with open("c++", "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod("c++", stat.S_IRWXU)


def vectors(name):
    """Says which instructions Inductor writes vector code for. By itself, it compiles and runs trials to find out what this machine
    has, also when it loads an engine; what an engine needs is in its shared object, where the dynamic linker looks."""
    from torch._inductor import cpu_vec_isa

    picked = [getattr(cpu_vec_isa, name)()] if name else []
    cpu_vec_isa.valid_vec_isa_list = lambda: picked


def settled(made, path):
    """Writes the package again, in order, without a number that is another one each time. Of the code that was compiled, which has
    paths of this machine, the loader wants no more than the names of its files."""
    with zipfile.ZipFile(made) as package, zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as out:
        for entry in sorted(package.infolist(), key=lambda e: e.filename):
            if not entry.filename.endswith("/.data/serialization_id"):
                out.writestr(zipfile.ZipInfo(entry.filename), b"" if entry.filename.endswith(".cpp") else package.read(entry))
