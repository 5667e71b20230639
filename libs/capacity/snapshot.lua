-- What the pool holds; nothing changes.
--
-- Reply  {places, places of batch, waiting, microseconds until it opens, until a cooldown ends,
--         until its ramp is over, length of the ramp, units of the four levels}; {} without state
if not level then return {} end
find_lapsed()
return {
  places, batch_places, waiting, math.max(0, opens - now), math.max(0, cool_end - now),
  math.max(0, ramp_end - now), ramp_end - cool_end, level[1], level[2], level[3], level[4],
}
