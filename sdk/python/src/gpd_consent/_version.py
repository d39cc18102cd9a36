"""Equal to the version in pyproject.toml, which a test checks."""

VERSION = "0.1.0"
USER_AGENT = f"gpd-consent-python/{VERSION}"
