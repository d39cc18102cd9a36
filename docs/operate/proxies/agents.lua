-- HAProxy 2.6 or later asks gpd about a request before it goes to the site.
local CHECK = "http://127.0.0.1:8080/v1/agents/check"
-- The body stays with the site, and a connection is HAProxy's.
local KEPT_BACK = { ["connection"] = true, ["content-length"] = true, ["expect"] = true, ["host"] = true,
  ["te"] = true, ["transfer-encoding"] = true, ["upgrade"] = true, ["x-original-method"] = true,
  ["x-original-uri"] = true }

-- HAProxy counts the values of a header from 0.
local function valuesOf(header)
  local values = {}
  for i = 0, #header do values[#values + 1] = header[i] end
  return values
end

core.register_action("ask_gpd", { "http-req" }, function(txn)
  local headers = {}
  for name, header in pairs(txn.http:req_get_headers()) do
    if not KEPT_BACK[name] then headers[name] = valuesOf(header) end
  end
  headers["x-forwarded-for"] = { txn.f:src() }
  headers["x-forwarded-proto"] = { txn.f:ssl_fc() == 1 and "https" or "http" }
  headers["x-forwarded-host"] = { txn.f:req_hdr("host") or "" }
  headers["x-forwarded-method"] = { txn.f:method() }
  headers["x-forwarded-uri"] = { txn.f:pathq() }
  local answer = core.httpclient():get({ url = CHECK, headers = headers, timeout = 5000 })
  local told = answer.headers or {}
  if answer.status == 204 then
    for _, name in ipairs({ "gpd-agent", "gpd-agent-status", "gpd-agent-intent" }) do
      if told[name] then txn.http:req_set_header(name, told[name][0]) end
    end
    return
  end
  -- Without an answer nobody knows whether the policy lets the request in.
  local refused = answer.status == 401 or answer.status == 403 or answer.status == 429
  local reply = txn:reply({ status = refused and answer.status or 503, body = refused and answer.body or "" })
  for _, name in ipairs({ "gpd-agent-case", "accept-signature", "retry-after", "content-type", "cache-control" }) do
    if refused and told[name] then reply:add_header(name, told[name][0]) end
  end
  txn:done(reply)
end)
