"""Of this directory pytest runs the examples in the Markdown pages; scripts are run by Sphinx."""

collect_ignore_glob = ["*.py", "_build", "gallery"]
