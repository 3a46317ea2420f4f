# SPDX-License-Identifier: Apache-2.0
"""What docs/at-scale/convert.py does in a task of Spark, with commands that note how they were called."""

import importlib.util
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "docs/at-scale/convert.py"


@pytest.fixture(name="convert")
def convert_script():
    spec = importlib.util.spec_from_file_location("convert", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def program(folder, name, then=""):
    """A command that appends its arguments to the file calls, and does more."""
    path = folder / name
    path.write_text(f'#!/bin/sh\necho "{name} $*" >>"{folder}/calls"\n{then}\n', encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def options(folder, then="", **more):
    return {"output": "tables", "run": "monday", "memtrace": program(folder, "memtrace", then), "events": False, "get": None, "put": None, **more}


def test_convert(convert, tmp_path):
    """A trace is converted under the run's name; a second time the same files are replaced."""
    assert convert.convert("/traces/rank 0.bin", **options(tmp_path, events=True)) == ""
    assert (tmp_path / "calls").read_text(encoding="utf-8") == "memtrace --quiet export parquet --events --force --run monday -o tables /traces/rank 0.bin\n"


def test_object_store(convert, tmp_path):
    """The trace is fetched into a folder of the task, which is gone afterwards, and the tables are stored from there."""
    get, put = program(tmp_path, "get", 'echo trace >"$2"'), program(tmp_path, "put", 'test -s "$1/runs"')
    store = 'test -s "$9" && mkdir "$8" && echo rows >"$8/runs"'
    assert convert.convert("s3://b/rank0.bin", **options(tmp_path, store, output="s3://b/tables", get=get + " {from} {to}", put=put + " {from} {to}")) == ""
    fetched, converted, stored = (tmp_path / "calls").read_text(encoding="utf-8").splitlines()
    folder = fetched.split()[-1].rsplit("/", 1)[0]
    assert fetched == f"get s3://b/rank0.bin {folder}/rank0.bin"
    assert converted.endswith(f"-o {folder}/tables {folder}/rank0.bin")
    assert stored == f"put {folder}/tables s3://b/tables" and not Path(folder).exists()


def test_problems_are_told(convert, tmp_path, monkeypatch, capsys):
    """What fails is named with its reason, by the task and at the end; the others are converted."""
    failing = options(tmp_path, 'case $9 in *bad*) echo "memtrace: cut short" >&2; exit 1; esac')
    assert convert.convert("bad.bin", **failing) == f"bad.bin: {failing['memtrace']} ended with status 1: memtrace: cut short"
    assert "No such file" in convert.convert("a.bin", **{**failing, "memtrace": str(tmp_path / "none")})
    monkeypatch.setitem(sys.modules, "pyspark.sql", Spark)
    monkeypatch.setattr(sys, "argv", ["convert.py", "--run", "monday", "-o", "tables", "--memtrace", failing["memtrace"], "a.bin", "bad.bin", "c.bin"])
    assert convert.main() == 1
    printed = capsys.readouterr()
    assert printed.out == "2 of 3 traces are in tables.\n" and printed.err.startswith("bad.bin: ") and printed.err.count("\n") == 1


class Spark:
    """As much of pyspark as the script uses, in this process; nightly tests have the real one."""

    @classmethod
    def parallelize(cls, values, partitions):
        assert len(values) == partitions
        return values_of(values)

    @classmethod
    def appName(cls, _):
        return cls

    @classmethod
    def getOrCreate(cls):
        return cls


Spark.SparkSession = Spark.builder = Spark.sparkContext = Spark


def values_of(values):
    class Collection:
        map = staticmethod(lambda function: values_of([function(value) for value in values]))
        collect = staticmethod(lambda: values)

    return Collection
