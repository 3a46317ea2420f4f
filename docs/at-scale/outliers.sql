-- Categories of which a rank held another amount than the others at its peak: more than 5 robust standard deviations
-- (1.4826 times the median of the deviations) and more than 1 % of a usual peak away from the median.
WITH held AS (
  SELECT p.run, p.rank, p.category, CAST(sum(p.bytes) AS BIGINT) AS bytes
  FROM profiles p JOIN runs r ON r.run = p.run AND r.rank = p.rank
  WHERE p.moment = 'peak' AND p.level = CASE WHEN r.framework_alloc_count > 0 THEN 'framework' ELSE 'driver' END
  GROUP BY p.run, p.rank, p.category
), cells AS ( -- with zeros
  SELECT r.run, r.rank, c.category, coalesce(h.bytes, 0) AS bytes
  FROM runs r
  JOIN (SELECT DISTINCT run, category FROM held) c ON c.run = r.run
  LEFT JOIN held h ON h.run = r.run AND h.rank = r.rank AND h.category = c.category
), usual AS (
  SELECT run, category, median(bytes) AS usual_bytes FROM cells GROUP BY run, category
), away AS (
  SELECT c.run, c.rank, c.category, c.bytes, u.usual_bytes, abs(c.bytes - u.usual_bytes) AS away_bytes
  FROM cells c JOIN usual u ON u.run = c.run AND u.category = c.category
), spread AS (
  SELECT run, category, 1.4826 * median(away_bytes) AS deviation FROM away GROUP BY run, category
), whole AS (
  SELECT run, median(bytes) AS peak_bytes
  FROM (SELECT run, rank, sum(bytes) AS bytes FROM held GROUP BY run, rank) peaks GROUP BY run
)
SELECT a.run, a.rank, a.category, a.bytes, CAST(a.usual_bytes AS BIGINT) AS usual_bytes,
  round(a.bytes / nullif(a.usual_bytes, 0), 2) AS times
FROM away a
JOIN spread s ON s.run = a.run AND s.category = a.category
JOIN whole w ON w.run = a.run
WHERE a.away_bytes > 5 * s.deviation AND a.away_bytes > 0.01 * w.peak_bytes
ORDER BY a.run, a.away_bytes DESC, a.rank, a.category
