-- Changes what stands in the store, if it still stands as the writer saw it: all of it or nothing. Everything is compared
-- before anything is written, and nothing else runs in between. Gives 1 when it is written; otherwise 0, or in a list
-- what a key has instead. A server that is out of memory refuses the first write of a script, and none after it;
-- only a key that somebody else gave another type would stop it halfway.
local call, ARGV, KEYS, unpack, tonumber = redis.call, ARGV, KEYS, unpack, tonumber
local at = 1

local keys = tonumber(ARGV[at])
at = at + 1
for _ = 1, keys do
    local found = call('GET', KEYS[tonumber(ARGV[at])])
    -- An argument that is empty stands for nothing: no value is.
    if (found or '') ~= ARGV[at + 1] then
        return { found }
    end
    at = at + 2
end

-- Of each hash: its key, how many fields, their names, what they must have, and what they get instead.
local hashes = tonumber(ARGV[at])
at = at + 1
local first = at
for _ = 1, hashes do
    local count = tonumber(ARGV[at + 1])
    local found = call('HMGET', KEYS[tonumber(ARGV[at])], unpack(ARGV, at + 2, at + 1 + count))
    at = at + 1 + count
    for number = 1, count do
        if (found[number] or '') ~= ARGV[at + number] then
            return 0
        end
    end
    at = at + 1 + 2 * count
end

at = first
for _ = 1, hashes do
    local key, count = KEYS[tonumber(ARGV[at])], tonumber(ARGV[at + 1])
    local values = at + 1 + 2 * count
    local set, last = {}, 0
    for number = 1, count do
        if ARGV[values + number] ~= '' then
            set[last + 1], set[last + 2] = ARGV[at + 1 + number], ARGV[values + number]
            last = last + 2
        end
    end
    if last > 0 then
        call('HSET', key, unpack(set, 1, last))
    end
    at = values + 1 + count
end

local writes = tonumber(ARGV[at])
at = at + 1
for _ = 1, writes do
    local count = tonumber(ARGV[at + 2])
    call(ARGV[at], KEYS[tonumber(ARGV[at + 1])], unpack(ARGV, at + 3, at + 2 + count))
    at = at + 3 + count
end

-- The same command for each of the keys from one on, with two arguments for each.
local rows = tonumber(ARGV[at])
at = at + 1
for _ = 1, rows do
    local command, key, count = ARGV[at], tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
    at = at + 3
    for number = 0, count - 1 do
        call(command, KEYS[key + number], ARGV[at], ARGV[at + 1])
        at = at + 2
    end
end
return 1
