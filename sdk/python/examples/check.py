"""GPD_CONSENT_URL=http://127.0.0.1:8080 GPD_CONSENT_KEY=gpd_sk_… python check.py PRINCIPAL PURPOSE"""

import sys

from gpd_consent import ConsentClient, ConsentError


def main(principal_id: str = "u-1", purpose: str = "device-identification") -> int:
    try:
        with ConsentClient.from_env() as consent:
            before = consent.can_process(principal_id, purpose)
            print("before:", before.allowed, before.reason)
            consent.grant(principal_id, [purpose])
            print("granted:", consent.is_allowed(principal_id, purpose))
            consent.withdraw(principal_id, [purpose])
            print("withdrawn:", consent.is_allowed(principal_id, purpose))
    except ConsentError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
