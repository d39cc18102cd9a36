import json
import sys

import openapi_client as gpd

configuration = gpd.Configuration(host=sys.argv[1], access_token=sys.argv[2])
with gpd.ApiClient(configuration) as client:
    api = gpd.ConsentApi(client)

    def is_allowed():
        return api.check_consent(gpd.ConsentCheck(principalId="u-py", purpose="newsletter")).allowed

    before = is_allowed()
    grant = gpd.ConsentGrant(principalId="u-py", purposes=["newsletter"])
    written = api.grant_consent(grant, idempotency_key="order-py")
    granted = is_allowed()
    api.withdraw_consent(gpd.ConsentWrite(principalId="u-py", purposes=["newsletter"]))
    try:
        api.grant_consent(gpd.ConsentGrant(principalId="u-py", purposes=["no-such-purpose"]))
    except gpd.ApiException as refusal:
        told = [refusal.status, refusal.data.error]
    print(json.dumps([before, granted, written.seq > 0, is_allowed(), *told]))
