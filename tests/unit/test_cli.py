"""The command line: exit codes, messages, files."""

from __future__ import annotations

import math
import subprocess
import sys
from concurrent.futures.process import BrokenProcessPool

import pytest

import hasd
from hasd import cli


def usage_error(capsys, *argv: str) -> str:
    """What argparse says on the last line before it ends with 2."""
    with pytest.raises(SystemExit) as end:
        cli.main(argv)
    assert end.value.code == 2
    return capsys.readouterr().err.splitlines()[-1]


def test_the_version_is_printed(capsys):
    with pytest.raises(SystemExit) as end:
        cli.main(["--version"])
    assert end.value.code == 0
    assert capsys.readouterr().out == f"hasd {hasd.__version__}\n"


def test_help_names_every_experiment(capsys):
    with pytest.raises(SystemExit) as end:
        cli.main(["reproduce", "--help"])
    assert end.value.code == 0
    text = capsys.readouterr().out
    names = ("dimension", "figure", "softmax", "search", "restart", "gradnorm", "linf", "training", "all")
    assert all(name in text for name in names)


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ((), "required: COMMAND"),
        (("reproduce",), "required: EXPERIMENT"),
        (("reproduce", "moon"), "invalid choice: 'moon'"),
        (("reproduce", "figure", "--n", "0"), "argument --n: must be a whole number of at least 1, got '0'"),
        (("reproduce", "figure", "--n", "ten"), "argument --n: must be a whole number of at least 1, got 'ten'"),
        (("reproduce", "figure", "--seed", "-1"), "argument --seed: must be a whole number of at least 0, got '-1'"),
        (("reproduce", "all", "--jobs", "1.5"), "argument --jobs: must be a whole number of at least 1, got '1.5'"),
        (("reproduce", "softmax", "--n", "5"), "unrecognized arguments: --n 5"),
        (("reproduce", "figure", "--n", "9" * 30), "argument --n: must be at most 1000000000, got '999"),
        (("reproduce", "figure", "--out", ""), "argument --out: must name a folder, got ''"),
        (
            ("reproduce", "figure", "--p", "1.5"),
            """argument --p: must be a number of at least 2, or "inf", got '1.5'""",
        ),
        (
            ("reproduce", "softmax", "--p", "nan"),
            """argument --p: must be a number of at least 2, or "inf", got 'nan'""",
        ),
        (
            ("reproduce", "dimension", "--p", "two"),
            """argument --p: must be a number of at least 2, or "inf", got 'two'""",
        ),
        (("reproduce", "dimension", "--d", "0"), "argument --d: must be a whole number of at least 1, got '0'"),
        (("reproduce", "restart", "--p", "3"), "unrecognized arguments: --p 3"),
    ],
)
def test_wrong_usage_is_named(capsys, argv, message):
    assert message in usage_error(capsys, *argv)


def test_reproduce_names_the_files_it_writes_into_a_new_folder(capsys, tmp_path):
    out = tmp_path / "deep" / "results"
    argv = ["reproduce", "softmax", "--quick", "--iterations", "3", "--seed", "7", "--jobs", "1", "--out", str(out)]
    assert cli.main(argv) == 0
    names = [line.rsplit("/", 1)[-1].rsplit("\\", 1)[-1] for line in capsys.readouterr().out.splitlines()]
    assert names == ["softmax.csv", "softmax.md", "softmax.png", "softmax.pdf", "report.md"]
    assert sorted(path.name for path in out.iterdir()) == sorted(names)
    assert "3 iterations at most, seed 7" in (out / "report.md").read_text(encoding="utf-8")


def test_a_twin_without_minimiser_is_one_line_and_the_published_panels_are_written(capsys, tmp_path):
    argv = ["reproduce", "figure", "--quick", "--n", "4", "--d", "4", "--iterations", "1", "--jobs", "1"]
    assert cli.main([*argv, "--out", str(tmp_path)]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1 and lines[0].startswith("hasd: figure: the twin, the same A with random signs, is left out")
    assert (tmp_path / "figure.png").exists() and "is left out" in (tmp_path / "report.md").read_text(encoding="utf-8")


def test_sizes_that_cannot_be_are_one_line_and_exit_1(capsys, tmp_path):
    argv = ["reproduce", "dimension", "--quick", "--n", "1", "--jobs", "1", "--out", str(tmp_path)]
    assert cli.main(argv) == 1
    assert capsys.readouterr().err == "hasd: error: a graph needs at least 2 nodes, got 1\n"


def test_an_out_that_is_a_file_is_refused(capsys, tmp_path):
    path = tmp_path / "taken"
    path.write_text("")
    assert cli.main(["reproduce", "softmax", "--quick", "--jobs", "1", "--out", str(path)]) == 1
    assert capsys.readouterr().err == f"hasd: error: --out {path}: it is not a folder\n"


def test_no_more_workers_are_started_than_there_are_cores(monkeypatch, tmp_path):
    """They would all be started: a hundred thousand processes."""
    asked = []

    class Counted(cli.Workers):
        def __init__(self, jobs):
            asked.append(jobs)
            super().__init__(jobs)

    monkeypatch.setattr(cli, "Workers", Counted)
    monkeypatch.setattr(cli, "cores", lambda: 3)
    monkeypatch.setattr(cli, "save", lambda *args: [])
    for jobs in ([], ["--jobs", "2"], ["--jobs", "100000"]):
        assert cli.main(["reproduce", "softmax", *jobs, "--out", str(tmp_path)]) == 0
    assert asked == [3, 2, 3]


@pytest.mark.skipif(sys.platform == "win32", reason="needs a shell of Unix")
def test_closed_streams_do_not_keep_the_report_from_being_written(tmp_path):
    argv = [sys.executable, "-m", "hasd.cli", "reproduce", "softmax", "--quick", "--iterations", "1", "--jobs", "1"]
    shell = ["sh", "-c", 'exec "$@" >&- 2>&-', "sh", *argv, "--out", str(tmp_path)]
    assert subprocess.run(shell, check=False).returncode == 0
    assert (tmp_path / "report.md").exists()


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (KeyboardInterrupt(), 130, "hasd: interrupted"),
        (BrokenProcessPool(), 1, "hasd: error: a worker process died; was it out of memory? Try --jobs 1"),
        (ImportError("needs matplotlib"), 1, "hasd: error: needs matplotlib"),
        (MemoryError(), 1, "hasd: error: this takes more memory than there is"),
        (OSError(28, "No space left on device"), 1, "hasd: error: No space left on device"),
        (OSError(13, "Permission denied", "a\nb"), 1, "hasd: error: a\\nb: Permission denied"),
        (ValueError(), 1, "hasd: error: ValueError"),
    ],
)
def test_failures_are_one_line(capsys, monkeypatch, tmp_path, error, code, message):
    def fail(*args):
        raise error

    monkeypatch.setattr(cli, "save", fail)
    assert cli.main(["reproduce", "restart", "--quick", "--jobs", "1", "--out", str(tmp_path)]) == code
    assert capsys.readouterr().err.splitlines() == [message]


def test_options_reach_the_sizes():
    options = cli.parser().parse_args(["reproduce", "figure", "--n", "7", "--symmetric", "--quick"])
    sizes = cli._sizes(cli.EXPERIMENTS["figure"], options)
    assert (sizes.n, sizes.symmetric, sizes.d) == (7, True, cli.EXPERIMENTS["figure"].quick.d)
    plain = cli._sizes(cli.EXPERIMENTS["figure"], cli.parser().parse_args(["reproduce", "figure"]))
    assert plain == cli.EXPERIMENTS["figure"].sizes


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (("dimension", "--d", "1000", "--n", "200", "--p", "inf"), {"d": 1000, "n": 200, "p": math.inf}),
        (("dimension",), {"d": 100_000, "n": 100_000, "p": None}),
        (("softmax", "--p", "2.5", "--d", "30"), {"d": 30, "p": 2.5}),
        (("softmax",), {"d": 1000, "p": None}),
        (("figure", "--p", "4", "--n", "8", "--d", "3"), {"n": 8, "d": 3, "p": 4.0}),
        (("figure",), {"p": math.inf}),
        (("linf", "--n", "300", "--d", "20", "--seconds"), {"n": 300, "d": 20, "seconds": True}),
        (("linf",), {"n": 2000, "d": 200, "seconds": False}),
        (("training", "--steps", "9", "--seeds", "2", "--seed", "4"), {"steps": 9, "seeds": 2, "seed": 4, "rates": 5}),
    ],
)
def test_sizes_and_exponents_are_options(argv, expected):
    sizes = cli._sizes(cli.EXPERIMENTS[argv[0]], cli.parser().parse_args(["reproduce", *argv]))
    assert {name: getattr(sizes, name) for name in expected} == expected


def test_the_command_runs_as_a_module():
    done = subprocess.run([sys.executable, "-m", "hasd.cli", "--version"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, f"hasd {hasd.__version__}\n")
