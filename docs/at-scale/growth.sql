-- Ranks whose memory grows from iteration to iteration: the slope of what is live when each ends, without the first
-- tenth, in which a program still builds up, and the category that grows most. Peaks of iterations would show growth
-- where the last one was cut short.
WITH ends AS (
  SELECT run, rank, step, live_bytes, row_number() OVER (PARTITION BY run, rank ORDER BY end_ns) AS place,
    count(*) OVER (PARTITION BY run, rank) AS steps
  FROM steps WHERE ended
), slopes AS (
  SELECT run, rank, count(*) AS steps, min(step) AS first_step, regr_slope(live_bytes, step) AS slope,
    corr(live_bytes, step) AS correlation, max(live_bytes) AS most
  FROM ends WHERE place > 2 AND place > steps / 10 GROUP BY run, rank
), parts AS (
  SELECT c.run, c.rank, c.category, regr_slope(c.live_bytes, c.step) AS slope
  FROM step_categories c JOIN slopes s ON s.run = c.run AND s.rank = c.rank
  WHERE c.ended AND c.step >= s.first_step GROUP BY c.run, c.rank, c.category
), ordered AS (
  SELECT run, rank, category, slope, row_number() OVER (PARTITION BY run, rank ORDER BY slope DESC, category) AS place
  FROM parts
)
SELECT s.run, s.rank, CAST(round(s.slope) AS BIGINT) AS bytes_per_step, s.steps, p.category,
  CAST(round(p.slope) AS BIGINT) AS category_bytes_per_step
FROM slopes s JOIN ordered p ON p.run = s.run AND p.rank = s.rank AND p.place = 1
WHERE s.steps >= 5 AND s.correlation > 0.9 AND s.slope * s.steps > 0.001 * s.most
ORDER BY s.run, bytes_per_step DESC, s.rank
