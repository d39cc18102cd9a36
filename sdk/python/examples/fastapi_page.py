"""A page that is rendered by what its visitor allows.

pip install fastapi uvicorn 'gpd-consent[proofs]', then
GPD_CONSENT_URL=… GPD_CONSENT_KEY=… uvicorn --factory fastapi_page:create_app
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse

from gpd_consent import AsyncConsent, AsyncConsentClient


def principal_of(request: Request) -> str | None:
    """This header takes the place of your session, which knows who is signed in, if anybody is."""
    return request.headers.get("x-user")


def create_app(consent: AsyncConsent | None = None) -> FastAPI:
    client = consent or AsyncConsentClient.from_env(cookie_domain=os.environ.get("COOKIE_DOMAIN"))

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        yield
        await client.close()

    app = FastAPI(lifespan=lifespan)

    @app.get("/")
    async def shop(request: Request) -> HTMLResponse:
        may = await client.may(request, ["newsletter", "ads"], principal_id=principal_of(request))
        page = HTMLResponse("<h1>Shop</h1>" + ("<p>Seen elsewhere</p>" if may.allows("ads") else ""))
        page.headers["Cache-Control"] = "private, no-store"  # the page is this visitor's
        if may.set_cookie:
            page.headers.append("Set-Cookie", may.set_cookie)
        return page

    return app
