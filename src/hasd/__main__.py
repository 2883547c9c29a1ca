"""``python -m hasd`` is the command ``hasd``."""

from .cli import main

if __name__ == "__main__":
    raise SystemExit(main())
