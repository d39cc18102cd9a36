"""A dependency for FastAPI: requests that reach the handlers behind it may be processed.

pip install fastapi uvicorn gpd-consent, then
GPD_CONSENT_URL=… GPD_CONSENT_KEY=… uvicorn --factory fastapi_guard:create_app
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from fastapi import Depends, FastAPI, HTTPException, Request

from gpd_consent import AsyncConsent, AsyncConsentClient


def require_consent(
    consent: AsyncConsent, purpose: str, principal_of: Callable[[Request], str | None]
) -> Callable[[Request], Awaitable[str]]:
    """Passes the principal on if the person granted the purpose; otherwise 403, or 401 for nobody."""

    async def dependency(request: Request) -> str:
        principal_id = principal_of(request)
        if not principal_id:
            raise HTTPException(401, {"error": "sign-in-needed"})
        # An error, such as for a wrong key, becomes a 500, so nothing is processed either.
        decision = await consent.can_process(principal_id, purpose)
        if not decision.allowed:
            raise HTTPException(
                403, {"error": "consent-needed", "purpose": purpose, "reason": decision.reason}
            )
        return principal_id

    return dependency


def principal_of(request: Request) -> str | None:
    """This header takes the place of your session, which knows the person."""
    return request.headers.get("x-user")


def create_app(consent: AsyncConsent | None = None) -> FastAPI:
    client = consent or AsyncConsentClient.from_env()

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        yield
        await client.close()

    app = FastAPI(lifespan=lifespan)

    @app.get("/offers")
    async def offers(
        principal_id: str = Depends(require_consent(client, "newsletter", principal_of)),
    ) -> dict[str, list[str]]:
        return {"offers": [f"for {principal_id}"]}

    return app
