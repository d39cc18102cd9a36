"""As in pyproject.toml; a test holds them together."""

VERSION = "0.1.0"
USER_AGENT = f"gpd-consent-python/{VERSION}"
