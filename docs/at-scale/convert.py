"""Turns traces into Parquet tables on a Spark cluster, each trace in a task of its own.

    spark-submit convert.py --run monday -o /shared/tables /shared/traces/*.bin
    spark-submit convert.py --run monday -o s3://bucket/tables \\
        --get 'aws s3 cp {from} {to}' --put 'aws s3 cp --recursive {from} {to}' s3://bucket/traces/rank0.bin ...

Each executor needs the command memtrace, and either the folders or the programs of --get and --put. A trace that cannot be converted is named at the end,
with the reason, and the others are converted; the exit status is then 1. A task that Spark repeats writes the same files again.
"""

import argparse
import os
import shlex
import subprocess
import sys
import tempfile


def main():
    options = parse()
    from pyspark.sql import SparkSession

    context = SparkSession.builder.appName(f"memtrace export parquet --run {options.run}").getOrCreate().sparkContext
    names = vars(options).copy()
    traces = names.pop("traces")
    problems = [text for text in context.parallelize(traces, len(traces)).map(lambda trace: convert(trace, **names)).collect() if text]
    for text in problems:
        print(text, file=sys.stderr)
    print(f"{len(traces) - len(problems)} of {len(traces)} traces are in {options.output}.")
    return bool(problems)


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("traces", nargs="+", metavar="TRACE")
    parser.add_argument("-o", "--output", required=True, help="the folder of the tables")
    parser.add_argument("--run", required=True, help="the name of the run, the same for all its ranks")
    parser.add_argument("--memtrace", default="memtrace", help="the command on the executors")
    parser.add_argument("--events", action="store_true", help="also write every block and every event")
    parser.add_argument("--get", metavar="COMMAND", help="fetches a trace: {from} is its address, {to} a file")
    parser.add_argument("--put", metavar="COMMAND", help="stores tables: {from} is a folder, {to} the value of -o")
    return parser.parse_args()


def convert(trace, output, run, memtrace, events, get, put):
    """Converts one trace and returns what went wrong, "" if nothing did."""
    with tempfile.TemporaryDirectory() as folder:
        file, tables = trace, output
        if get:
            file = os.path.join(folder, os.path.basename(trace))
        if put:
            tables = os.path.join(folder, "tables")
        command = [memtrace, "--quiet", "export", "parquet", "--force", "--run", run, "-o", tables, file]
        if events:
            command.insert(4, "--events")
        for step in (get and filled(get, trace, file), command, put and filled(put, tables, output)):
            if step:
                try:
                    subprocess.run(step, check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                except OSError as error:
                    return f"{trace}: {error}"
                except subprocess.CalledProcessError as error:
                    return f"{trace}: {step[0]} ended with status {error.returncode}: {error.stderr.decode(errors='replace').strip()}"
    return ""


def filled(command, source, target):
    return [word.replace("{from}", source).replace("{to}", target) for word in shlex.split(command)]


if __name__ == "__main__":
    sys.exit(main())
