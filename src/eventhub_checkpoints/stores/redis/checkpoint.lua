-- Atomic: store one checkpoint if the stored row is the one that was seen.
--
-- KEYS[1]  the checkpoints of one consumer group
-- ARGV     partition id; 'any', 'none' or 'same': which row may be stored now; the version for
--          'same'; offset, sequence number, new version, writer
-- Returns 1 (stored), or 0 and the conflicting row, nil if there is none.

local partition_id, allowed, seen, offset, number, version, writer = unpack(ARGV)

local function carries(raw, expected)
  local readable, row = pcall(cjson.decode, raw)
  return (readable and type(row) == 'table' and row.version == expected)
    or redis.sha1hex(raw) == expected
end

local raw = redis.call('HGET', KEYS[1], partition_id)
-- The write is already stored: it was repeated because its first answer was lost.
if raw and carries(raw, version) then
  return {1}
end
if allowed == 'same' and not (raw and carries(raw, seen)) or allowed == 'none' and raw then
  return {0, raw}
end
local time = redis.call('TIME')
redis.call('HSET', KEYS[1], partition_id, cjson.encode({
  offset = offset,
  sequencenumber = number,
  version = version,
  modified = string.format('%s.%06d', time[1], time[2]),
  writer = writer,
}))
return {1}
