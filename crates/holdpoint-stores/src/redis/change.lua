-- Changes what stands in the store, if it still stands as the writer saw it: all of it or nothing. Everything is compared
-- before anything is written, and nothing else runs in between. A server that is out of memory refuses the first write
-- of a script, and none after it.
local next = 0
local function take()
    next = next + 1
    return ARGV[next]
end

for _ = 1, tonumber(take()) do
    local command, key, field, is_there, expected = take(), KEYS[tonumber(take())], take(), take(), take()
    local found
    if command == 'GET' then
        found = redis.call('GET', key)
    else
        found = redis.call('HGET', key, field)
    end
    if (is_there == '1') ~= (found ~= false) or (found and found ~= expected) then
        return 0
    end
end

for _ = 1, tonumber(take()) do
    local command, key, count = take(), KEYS[tonumber(take())], tonumber(take())
    local arguments = {}
    for number = 1, count do
        arguments[number] = take()
    end
    redis.call(command, key, unpack(arguments))
end
return 1
