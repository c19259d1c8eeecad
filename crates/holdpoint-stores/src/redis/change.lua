-- Changes what stands in the store, if it still stands as the writer saw it: all of it or nothing. Everything is compared
-- before anything is written, and nothing else runs in between. Gives 1 when it is written; otherwise 0, or in a list
-- what a key has instead. A server that is out of memory refuses the first write
-- of a script, and none after it.
local call, ARGV, KEYS, unpack, tonumber = redis.call, ARGV, KEYS, unpack, tonumber
local at = 1

-- Whether what was found, or false for nothing, is what the two arguments from here on tell: '1' and a value, or '0'.
local function stands(found, from)
    if found then
        return ARGV[from] == '1' and found == ARGV[from + 1]
    end
    return ARGV[from] == '0'
end

local keys = tonumber(ARGV[at])
at = at + 1
for _ = 1, keys do
    local found = call('GET', KEYS[tonumber(ARGV[at])])
    if not stands(found, at + 1) then
        return { found }
    end
    at = at + 3
end

local hashes = tonumber(ARGV[at])
at = at + 1
for _ = 1, hashes do
    local count = tonumber(ARGV[at + 1])
    local found = call('HMGET', KEYS[tonumber(ARGV[at])], unpack(ARGV, at + 2, at + 1 + count))
    at = at + 2 + count
    for number = 1, count do
        if not stands(found[number], at) then
            return 0
        end
        at = at + 2
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
