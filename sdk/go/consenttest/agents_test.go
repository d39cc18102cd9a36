package consenttest_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	consent "gpd.dev/consent-go"
	"gpd.dev/consent-go/consenttest"
)

func TestTheHandlerHandsOnWhoSignedAndRefusesWithoutTheReason(t *testing.T) {
	fake := consenttest.New()
	seen := []consent.AgentAnswer{}
	next := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen = append(seen, *consent.AgentOf(r.Context())) })
	handler := consent.AgentHandler(fake, consent.AgentOptions{}, func(answer consent.AgentAnswer) bool { return answer.Status != "invalid" }, next)
	ask := func() string {
		request := httptest.NewRequest(http.MethodGet, "https://shop.example/buy", nil)
		request.Header.Set("Signature", "sig1=:AAAA:")
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, request)
		return http.StatusText(recorder.Code) + " " + recorder.Body.String()
	}
	fake.SetAgent(consent.AgentAnswer{Status: "verified", Agent: "https://agent.example"})
	ask()
	fake.SetUnavailable(true)
	ask()
	if len(seen) != 2 || seen[0].Agent != "https://agent.example" || seen[1].Reason != "unavailable" || seen[1].Err == nil {
		t.Errorf("seen: %+v", seen)
	}
	fake.SetUnavailable(false)
	fake.SetAgent(consent.AgentAnswer{Status: "invalid", Reason: "expired"})
	if got := ask(); got != `Forbidden {"error":"agent-refused"}` {
		t.Error(got)
	}
	fake.SetNextError(consent.KindUnauthenticated, "")
	if got := ask(); got != "Internal Server Error {\"error\":\"internal\"}\n" {
		t.Error(got)
	}
	if consent.AgentOf(ctx) != nil {
		t.Error("a context without the handler has an answer")
	}
}
