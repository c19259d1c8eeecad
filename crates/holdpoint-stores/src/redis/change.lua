-- Changes what stands in the store, if it still stands as the writer saw it: all of it or nothing. Everything is compared
-- before anything is written, and nothing else runs in between. Gives 1 when it is written; otherwise 0, or in a list
-- what a key has instead. A server that is out of memory refuses the first write
-- of a script, and none after it.
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

local hashes = tonumber(ARGV[at])
at = at + 1
for _ = 1, hashes do
    local count = tonumber(ARGV[at + 1])
    local found = call('HMGET', KEYS[tonumber(ARGV[at])], unpack(ARGV, at + 2, at + 1 + count))
    at = at + 2 + count
    for number = 1, count do
        if (found[number] or '') ~= ARGV[at] then
            return 0
        end
        at = at + 1
    end
end

local writes = tonumber(ARGV[at])
at = at + 1
for _ = 1, writes do
    local count = tonumber(ARGV[at + 2])
    call(ARGV[at], KEYS[tonumber(ARGV[at + 1])], unpack(ARGV, at + 3, at + 2 + count))
    at = at + 3 + count
end
return 1
