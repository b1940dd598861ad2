-- Atomic: the rows, and the server's time at which they were so. Writes nothing.
--
-- KEYS[1]  the ownerships or the checkpoints of one consumer group
-- Answers the time, and the partition ids and rows in turn.

return {redis.call('TIME'), redis.call('HGETALL', KEYS[1])}
