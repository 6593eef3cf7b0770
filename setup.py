# SPDX-License-Identifier: Apache-2.0
"""The Python package as a wheel: CMake builds the compiled module (bindings/python), setuptools packs it.

CHOKEPOINT_BUILD_DIR names a build folder to go on with, so that nothing is compiled twice.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = pathlib.Path(__file__).resolve().parent


def version():
    return re.search(r"project\(chokepoint VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")).group(1)


class CMakeBuild(build_ext):
    def build_extension(self, ext):
        folder = pathlib.Path(os.environ.get("CHOKEPOINT_BUILD_DIR", pathlib.Path(self.build_temp) / "cmake")).resolve()
        options = ["-DCMAKE_BUILD_TYPE=Release", "-DCHOKEPOINT_PYTHON=ON", f"-DPython3_EXECUTABLE={sys.executable}"]
        if not (folder / "CMakeCache.txt").exists():
            options += ["-DCHOKEPOINT_DEVELOPER=OFF"]
            if shutil.which("ninja"):
                options += ["-GNinja"]
        subprocess.run(["cmake", "-S", str(ROOT), "-B", str(folder), *options], check=True)
        subprocess.run(["cmake", "--build", str(folder), "--target", "_chokepoint", "--parallel"], check=True)
        built = next((folder / "python" / "chokepoint").glob("_chokepoint*.so"))
        target = pathlib.Path(self.get_ext_fullpath(ext.name))
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(built, target)


setup(
    name="chokepoint",
    version=version(),
    description="What holds a training cluster back, worked out for one job on one wiring",
    license="Apache-2.0",
    python_requires=">=3.8",
    packages=["chokepoint"],
    package_dir={"chokepoint": "bindings/python/chokepoint"},
    package_data={"chokepoint": ["py.typed", "*.pyi"]},
    ext_modules=[Extension("chokepoint._chokepoint", sources=[])],
    cmdclass={"build_ext": CMakeBuild},
    extras_require={"frames": ["pandas"]},
    zip_safe=False,
)
