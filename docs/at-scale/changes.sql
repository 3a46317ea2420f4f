-- What the latest run holds at its peaks, by category, module and place, beside the run before it: bytes of the mean
-- rank, those that changed most first. No rows without two runs.
WITH begun AS (
  SELECT run, min(started) AS started, count(*) AS ranks FROM runs GROUP BY run
), aged AS (
  SELECT run, ranks, row_number() OVER (ORDER BY started DESC, run DESC) AS age FROM begun
), places AS ( -- once, however many files the run has
  SELECT DISTINCT run, stack, function, file FROM stacks
), held AS (
  SELECT a.age, p.category, p.module, coalesce(s.function, '') AS function, coalesce(s.file, '') AS file,
    p.bytes / CAST(a.ranks AS DOUBLE) AS bytes
  FROM profiles p
  JOIN aged a ON a.run = p.run AND a.age <= 2
  JOIN (SELECT max(age) AS runs FROM aged) n ON n.runs >= 2
  JOIN runs r ON r.run = p.run AND r.rank = p.rank
  LEFT JOIN places s ON s.run = p.run AND s.stack = p.stack
  WHERE p.moment = 'peak' AND p.level = CASE WHEN r.framework_alloc_count > 0 THEN 'framework' ELSE 'driver' END
), changed AS (
  SELECT category, module, function, file,
    CAST(round(sum(CASE WHEN age = 2 THEN bytes ELSE 0 END)) AS BIGINT) AS before_bytes,
    CAST(round(sum(CASE WHEN age = 1 THEN bytes ELSE 0 END)) AS BIGINT) AS bytes
  FROM held GROUP BY category, module, function, file
)
SELECT category, module, function, file, before_bytes, bytes, bytes - before_bytes AS change_bytes
FROM changed WHERE bytes <> before_bytes
ORDER BY abs(bytes - before_bytes) DESC, category, module, function, file
