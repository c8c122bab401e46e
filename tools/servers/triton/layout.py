"""Completes the Triton Inference Server in the Python that runs this: its Python backend needs a stub for this version of Python, and libpython."""

import pathlib
import shutil
import sys
import sysconfig

packages = pathlib.Path(sysconfig.get_path("platlib"))
server = packages / "pytriton" / "tritonserver"
minor = f"{sys.version_info.major}.{sys.version_info.minor}"
stub = server / "backends" / "python" / "triton_python_backend_stub"
shutil.copyfile(server / "python_backend_stubs" / minor / stub.name, stub)
for program in stub, server / "bin" / "tritonserver":
    program.chmod(0o755)

# The stub looks for libpython where the libraries of the wheel are, and then where the system has libraries.
name = sysconfig.get_config_var("INSTSONAME")
folder = pathlib.Path(sysconfig.get_config_var("LIBDIR"))
found = [path for path in (folder / name, folder / (sysconfig.get_config_var("MULTIARCH") or "") / name) if path.is_file()]
if not found:
    sys.exit(f"layout: no {name} in {folder}: on Debian, apt-get install libpython{minor}")
shutil.copyfile(found[0], packages / "nvidia_pytriton.libs" / name)
