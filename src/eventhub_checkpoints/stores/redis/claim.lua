-- Atomic: compare each claim of a batch with the stored row, and store it if it wins.
--
-- KEYS[1]  the ownerships of one consumer group
-- ARGV     partition id, expected etag ('': no row may exist), new etag, owner id; for each claim
-- Returns the server's time, and for each claim nil (won) or the conflicting row.

local time = redis.call('TIME')
local modified = string.format('%s.%06d', time[1], time[2])

-- A foreign value is identified by its SHA-1. That of any row is accepted too, for readers that
-- cannot parse it.
local function carries(raw, etag)
  local readable, row = pcall(cjson.decode, raw)
  return (readable and type(row) == 'table' and row.etag == etag) or redis.sha1hex(raw) == etag
end

local answers = {}
for at = 1, #ARGV, 4 do
  local partition_id, etag, new_etag, owner_id = unpack(ARGV, at, at + 3)
  local raw = redis.call('HGET', KEYS[1], partition_id)
  local answer = false
  if not raw or (etag ~= '' and carries(raw, etag)) then
    local row = cjson.encode({ownerid = owner_id, etag = new_etag, modified = modified})
    redis.call('HSET', KEYS[1], partition_id, row)
  -- The claim is already stored: it was repeated because its first answer was lost.
  elseif not carries(raw, new_etag) then
    answer = raw
  end
  answers[#answers + 1] = answer
end
return {time, answers}
