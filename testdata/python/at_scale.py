"""Runs docs/at-scale/*.sql over the tables of a folder, on duckdb or spark, and prints the rows of each as JSON.

Usage: at_scale.py duckdb|spark FOLDER RECIPE.sql..."""

import json
import os
import sys


def duckdb_engine(folder):
    import duckdb

    engine = duckdb.connect()
    with open(os.path.join(os.path.dirname(sys.argv[3]), "duckdb", "views.sql"), encoding="utf-8") as file:
        engine.execute(file.read().replace("'tables';", f"'{folder}';"))
    return lambda sql: [list(row) for row in engine.execute(sql).fetchall()]


def spark_engine(folder):
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    for table in os.listdir(folder):
        session.read.parquet(os.path.join(folder, table)).createOrReplaceTempView(table)
    return lambda sql: [list(row) for row in session.sql(sql).collect()]


query = {"duckdb": duckdb_engine, "spark": spark_engine}[sys.argv[1]](sys.argv[2])
rows = {}
for path in sys.argv[3:]:
    with open(path, encoding="utf-8") as file:
        rows[os.path.splitext(os.path.basename(path))[0]] = query(file.read())
json.dump(rows, sys.stdout)
