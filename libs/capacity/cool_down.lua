-- Nothing is admitted before the later of the known ends; then the refill climbs over the ramp.
-- What waits for a start gets its charges back: it was promised a refill that does not come.
--
-- ARGV   2 microseconds from now
-- Reply  microseconds until the end that holds
local finish = now + ARGV[2]
if not level then create() end
if finish <= cool_end then return cool_end - now end
if waiting > 0 then
  for _, promised in ipairs(redis.call('ZRANGE', KEYS[3], 0, -1)) do give_back_all(promised) end
  redis.call('DEL', KEYS[3])
  waiting = 0
end
for bucket = 1, 4 do level[bucket] = math.min(level[bucket], 0) end
cool_end, ramp_end = finish, finish + ramp
write()
return finish - now
