"""Draw the pictures of the guide into docs/images, for those who read it without a build: ``python docs/figures``."""

import runpy
from pathlib import Path

import matplotlib.pyplot as plt
from look import STYLE

HERE = Path(__file__).parent

plt.switch_backend("Agg")
plt.rcParams.update(STYLE)
for script in sorted(HERE.glob("[a-z]*.py")):
    runpy.run_path(str(script))
    if plt.get_fignums():
        plt.savefig(HERE.parent / "images" / f"{script.stem}.png", dpi=110)
        plt.close("all")
