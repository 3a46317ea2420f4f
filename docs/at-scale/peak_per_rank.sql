-- The peak of each rank, highest first, beside the median of its run: of an even number of ranks, the mean of the two
-- in the middle.
WITH peaks AS (
  SELECT run, rank, host, complete, out_of_memory, driver_peak_bytes,
    CASE WHEN framework_alloc_count > 0 THEN framework_peak_bytes ELSE driver_peak_bytes END AS peak_bytes
  FROM runs
), middle AS (
  SELECT run, median(peak_bytes) AS median_bytes FROM peaks GROUP BY run
)
SELECT p.run, p.rank, p.host, p.peak_bytes, CAST(p.peak_bytes - m.median_bytes AS BIGINT) AS above_median_bytes,
  p.driver_peak_bytes, p.out_of_memory, p.complete
FROM peaks p JOIN middle m ON m.run = p.run
ORDER BY p.run, p.peak_bytes DESC, p.rank
