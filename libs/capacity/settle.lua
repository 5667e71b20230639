-- Ends one reservation: its place is free, its estimate becomes what was used.
--
-- ARGV   2 reservation, 3 units of tokens used, or -1 if not known: then the estimate stays
--        charged; or -2 if the attempt never began: then its request is given back too
-- Reply  1, or 0 if no such reservation runs or waits, and then nothing changed
local this, used = ARGV[2], tonumber(ARGV[3])
if not level then return 0 end
local expiry = score(2, this)
if not expiry and waiting > 0 and used == -2 and redis.call('ZREM', KEYS[3], this) == 1 then
  waiting = waiting - 1
  give_back_all(this)
  write()
  return 1
end
if not expiry or expiry <= now then return 0 end

local batch, estimate = struct.unpack(RESERVATION, this)
if used == -2 then
  give_back_all(this)
elseif used >= 0 then
  give_back(2, estimate - used)
  if batch == 1 then give_back(4, estimate - used) end
end
places, batch_places = places - 1, batch_places - batch
redis.call('ZREM', KEYS[2], this)
write()
return 1
