-- Extends the leases of running attempts. One that is not there lost its state (a flush, a
-- failover) while it ran on: it is registered again and takes its place, but is not charged twice.
--
-- ARGV   from 2 the reservations
-- Reply  how many were registered again
local added = 0
if not level then create() end
for running = 2, #ARGV do
  if redis.call('ZADD', KEYS[2], now + lease, ARGV[running]) == 1 then
    places, batch_places = places + 1, batch_places + struct.unpack(RESERVATION, ARGV[running])
    added = added + 1
  end
end
if added > 0 then write() end
return added
