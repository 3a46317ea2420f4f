-- DuckDB's views of the tables of `memtrace export parquet -o tables`, which the recipes ask:
--   duckdb -init docs/at-scale/duckdb/views.sql -f docs/at-scale/outliers.sql

SET VARIABLE tables = 'tables';

CREATE VIEW runs AS SELECT * FROM read_parquet(getvariable('tables') || '/runs/*/*.parquet', hive_partitioning = true);
CREATE VIEW devices AS SELECT * FROM read_parquet(getvariable('tables') || '/devices/*/*.parquet', hive_partitioning = true);
CREATE VIEW profiles AS SELECT * FROM read_parquet(getvariable('tables') || '/profiles/*/*.parquet', hive_partitioning = true);
CREATE VIEW steps AS SELECT * FROM read_parquet(getvariable('tables') || '/steps/*/*.parquet', hive_partitioning = true);
CREATE VIEW step_categories AS SELECT * FROM read_parquet(getvariable('tables') || '/step_categories/*/*.parquet', hive_partitioning = true);
CREATE VIEW tags AS SELECT * FROM read_parquet(getvariable('tables') || '/tags/*/*.parquet', hive_partitioning = true);
CREATE VIEW samples AS SELECT * FROM read_parquet(getvariable('tables') || '/samples/*/*.parquet', hive_partitioning = true);
CREATE VIEW stacks AS SELECT * FROM read_parquet(getvariable('tables') || '/stacks/*/*.parquet', hive_partitioning = true);
CREATE VIEW frames AS SELECT * FROM read_parquet(getvariable('tables') || '/frames/*/*.parquet', hive_partitioning = true);

-- With --events:
-- CREATE VIEW blocks AS SELECT * FROM read_parquet(getvariable('tables') || '/blocks/*/*.parquet', hive_partitioning = true);
-- CREATE VIEW events AS SELECT * FROM read_parquet(getvariable('tables') || '/events/*/*.parquet', hive_partitioning = true);
