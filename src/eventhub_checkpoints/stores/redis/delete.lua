-- Atomic: delete the rows of both kinds together.
--
-- KEYS  the ownerships and the checkpoints of one consumer group
-- ARGV  the partition id; none for all partitions
-- Returns the number of deleted rows.

local removed = 0
for _, key in ipairs(KEYS) do
  if ARGV[1] then
    removed = removed + redis.call('HDEL', key, ARGV[1])
  else
    removed = removed + redis.call('HLEN', key)
    redis.call('DEL', key)
  end
end
return removed
