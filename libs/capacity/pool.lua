-- Stands before every script's own text: the pool's state as it was left.
--
-- KEYS[1]  the state as packed by write(); gone while the pool is new or has lost it
-- KEYS[2]  sorted set: running reservation -> the microsecond at which its lease lapses
-- KEYS[3]  sorted set: waiting reservation -> the microsecond at which it may begin
-- ARGV[1]  the caller's limits as packed below; the script's own arguments follow
--
-- A reservation is one string: whether it is of batch, the units of its estimated tokens, its id.
-- Units and formulas: pool.py. Every number is whole and below 2^53, which a double holds exactly;
-- packed doubles cost Redis half of what the same numbers cost as text.
--
-- It and the plain cases that follow it are flat, because half of what a script costs is tables and
-- functions that it makes.
local POOL, RESERVATION = '<ddddddddddd', '<Bd'
local lease, delay, ramp, request, places_limit, batch_places_limit,
  size_1, rate_1, size_2, rate_2, size_3, rate_3, size_4, rate_4
  = struct.unpack('<dddddddddddddd', ARGV[1])
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local state = redis.call('GET', KEYS[1])
local time, places, batch_places, waiting, opens, cool_end, ramp_end
-- Of requests, tokens, requests of batch, tokens of batch.
local level_1, level_2, level_3, level_4
if state then
  time, places, batch_places, waiting, opens, cool_end, ramp_end,
    level_1, level_2, level_3, level_4 = struct.unpack(POOL, state)
end
