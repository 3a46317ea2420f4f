-- What each rank held at its own peak, by category.
SELECT p.run, p.rank, p.category, CAST(sum(p.bytes) AS BIGINT) AS bytes
FROM profiles p JOIN runs r ON r.run = p.run AND r.rank = p.rank
WHERE p.moment = 'peak' AND p.level = CASE WHEN r.framework_alloc_count > 0 THEN 'framework' ELSE 'driver' END
GROUP BY p.run, p.rank, p.category
ORDER BY p.run, p.rank, bytes DESC, p.category
