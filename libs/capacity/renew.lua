-- Extends the leases of running attempts. One that is not there lost its state (a flush, a
-- failover) while it ran on: it is registered again and takes its place, but is not charged twice.
--
-- ARGV   from 2 three an attempt: reservation id, batch: '1' or '0', units of its tokens
-- Reply  {how many were registered again}
local added = 0
if not level then create() end
for first = 2, #ARGV - 2, 3 do
  local running, batch, tokens = ARGV[first], ARGV[first + 1], ARGV[first + 2]
  if redis.call('ZADD', KEYS[2], now + lease, running) == 1 then
    places, batch_places, added = places + 1, batch_places + batch, added + 1
    write('lease:' .. running, batch .. ' ' .. tokens)
  end
end
return {added}
