-- This node is still there: what it holds stays held.

local kinds = {
  a1 = { load_agent, save_agent },
  r1 = { function(key) return load_run('', key) end, save_run },
  m1 = { load_account, save_account },
}
local still = 0
fetch(A.keys)
for _, key in ipairs(A.keys) do
  local kind = kinds[string.sub(value_at(key) or '', 1, 2)]
  local record = kind and kind[1](key)
  local at = record and entry_of(record.n, NODE, HELD_BYTES)
  if at then
    local _, held = struct.unpack(HELD, record.n, at)
    record.n = with_entry(record.n, at, HELD_BYTES, struct.pack(HELD, NODE, held, now))
    kind[2](record)
    still = still + 1
  end
end
return still
