-- Atomic: read the rows, and the server's time at that moment. Writes nothing.
--
-- KEYS[1]  the ownerships or the checkpoints of one consumer group
-- Returns the time, and a flat list of partition ids and rows.

return {redis.call('TIME'), redis.call('HGETALL', KEYS[1])}
