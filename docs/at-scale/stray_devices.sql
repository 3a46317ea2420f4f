-- Devices on which a rank has at most half as much as on its own, and which are another rank's own: such as a context
-- that a call without a device created on the first one.
WITH used AS (
  SELECT d.run, d.rank, r.host, CASE WHEN d.uuid = '' THEN CAST(d.device AS VARCHAR(20)) ELSE d.uuid END AS device,
    greatest(d.driver_peak_bytes, d.framework_peak_bytes, d.reported_bytes) AS bytes
  FROM devices d JOIN runs r ON r.run = d.run AND r.rank = d.rank
  WHERE d.device >= 0
), most AS (
  SELECT run, rank, max(bytes) AS bytes FROM used GROUP BY run, rank
), owners AS (
  SELECT u.run, u.host, u.device, min(u.rank) AS rank, count(*) AS ranks
  FROM used u JOIN most m ON m.run = u.run AND m.rank = u.rank AND m.bytes = u.bytes
  GROUP BY u.run, u.host, u.device
)
SELECT u.run, u.rank, u.host, u.device, u.bytes, o.rank AS of_rank
FROM used u
JOIN most m ON m.run = u.run AND m.rank = u.rank
JOIN owners o ON o.run = u.run AND o.host = u.host AND o.device = u.device
WHERE u.bytes > 0 AND u.bytes <= m.bytes / 2
ORDER BY u.run, u.rank, u.device
