"""Pages are plain Markdown, so that they can be read without a build; here they get what only Sphinx understands.

- A comment that begins with the name of a directive becomes the directive: ``<!-- {toctree} ... -->``.
- A picture that a script in docs/figures draws is drawn anew: ``![alt](images/gain.png)`` by figures/gain.py.
- A link to an example, or to the folder of examples, leads to its page in the gallery.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

FIGURES = Path(__file__).parents[1] / "figures"
COMMENT = re.compile(r"^<!-- (\{[\w-]+\}.*?)\n-->$", re.MULTILINE | re.DOTALL)
PICTURE = re.compile(r"^!\[([^\]]*)\]\(images/(\w+)\.png\)$", re.MULTILINE)
EXAMPLE = re.compile(r"\]\(\.\./examples/(plot_\w+)\.py\)")


def plot(picture: re.Match[str]) -> str:
    """The directive that draws a picture, if a script for it is there."""
    alt, name = " ".join(picture[1].split()), picture[2]
    if not (FIGURES / f"{name}.py").is_file():
        return picture[0]
    return f"```{{eval-rst}}\n.. plot:: figures/{name}.py\n   :alt: {alt}\n```"


def for_sphinx(text: str) -> str:
    """A page as Sphinx is to read it.

    >>> print(for_sphinx("<!-- {toctree}\\n:hidden:\\n\\nguide\\n-->"))
    ```{toctree}
    :hidden:
    <BLANKLINE>
    guide
    ```
    >>> for_sphinx("[Filters](../examples/plot_fir_filter.py), [more](../examples)")
    '[Filters](gallery/plot_fir_filter.rst), [more](gallery/index.rst)'
    """
    text = COMMENT.sub(lambda comment: f"```{comment[1]}\n```", text)
    text = EXAMPLE.sub(r"](gallery/\1.rst)", text)
    return PICTURE.sub(plot, text.replace("](../examples)", "](gallery/index.rst)"))


def read(app: Any, page: str, source: list[str]) -> None:
    """Sphinx's event."""
    if Path(app.env.doc2path(page)).suffix == ".md":
        source[0] = for_sphinx(source[0])


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("source-read", read)
    return {"parallel_read_safe": True}
