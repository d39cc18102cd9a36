package consent

import (
	"context"
	"encoding/base64"
	"net/http"
	"regexp"
	"strings"
)

// AgentAnswer says who signed a request.
type AgentAnswer struct {
	// Status is verified, invalid, unverified or none.
	Status string `json:"status"`
	// Agent is the identity, a URL; "" unless the status is verified.
	Agent string `json:"agent,omitempty"`
	KeyID string `json:"keyid,omitempty"`
	Tag   string `json:"tag,omitempty"`
	// Intent is browse or pay, where the tag says so.
	Intent string `json:"intent,omitempty"`
	// Expires is the end of the signature, in seconds since the epoch.
	Expires float64 `json:"expires,omitempty"`
	// Reason is a code of the list in gpd's documentation, or unavailable. Do not tell the agent.
	Reason string `json:"reason,omitempty"`
	// Err is the reason why gpd could not be asked; nil for an answer of gpd.
	Err error `json:"-"`
}

// AgentOptions say more about a request than it does.
type AgentOptions struct {
	// Origin is the address of your site, such as https://shop.example; "" takes that of the request, which its client names.
	Origin string
	// Body is the body as it came, if a Content-Digest that the signature covers is to be compared.
	Body []byte
}

type describedRequest struct {
	Method  string              `json:"method"`
	URL     string              `json:"url"`
	Headers map[string][]string `json:"headers"`
	Body    string              `json:"body,omitempty"`
}

var (
	signatureHeaders = []string{"signature", "signature-input", "signature-agent"}
	coveredName      = regexp.MustCompile("\"([a-z0-9!#$%&'*+.^_`|~-]+)\"")
)

// describe returns the address and the headers of the signature with those that it covers: others are not gpd's business. False without
// a signature.
func describe(r *http.Request, options AgentOptions) (describedRequest, bool) {
	headers := map[string][]string{}
	isSigned := false
	for _, name := range signatureHeaders {
		if values := r.Header.Values(name); len(values) > 0 {
			headers[name], isSigned = values, true
		}
	}
	for _, found := range coveredName.FindAllStringSubmatch(strings.Join(headers["signature-input"], ","), -1) {
		if values := r.Header.Values(found[1]); len(values) > 0 {
			headers[found[1]] = values
		}
	}
	origin := strings.TrimRight(options.Origin, "/")
	if origin == "" {
		scheme := "http"
		if r.TLS != nil {
			scheme = "https"
		}
		origin = scheme + "://" + r.Host
	}
	body := base64.StdEncoding.EncodeToString(options.Body)
	return describedRequest{r.Method, origin + r.URL.RequestURI(), headers, body}, isSigned
}

// Agent returns who signed a request. Ask once for each: a nonce is used up by the first that asks. A request without signature needs no
// call. If gpd cannot be asked, nobody is verified: unverified, unavailable.
func (c *Client) Agent(ctx context.Context, r *http.Request, options AgentOptions) (AgentAnswer, error) {
	const name = "Agent"
	if r == nil || r.URL == nil {
		return AgentAnswer{}, hinted(name, KindInvalidRequest, "r is a request of a server")
	}
	described, isSigned := describe(r, options)
	if err := c.begin(ctx, name, r, options); err != nil || !isSigned {
		return AgentAnswer{Status: "none"}, err
	}
	answer, err := fetch[AgentAnswer](ctx, c, callOf(name, "agent", "", described))
	cause, isUnasked := undecided(err)
	if isUnasked && c.settings.onUnavailable == DenyUnavailable {
		return AgentAnswer{Status: "unverified", Reason: "unavailable", Err: cause}, nil
	}
	return answer, err
}

type agentKey struct{}

// AgentOf returns what AgentHandler found about this request; nil if it did not.
func AgentOf(ctx context.Context) *AgentAnswer {
	answer, _ := ctx.Value(agentKey{}).(*AgentAnswer)
	return answer
}

// AgentHandler is a middleware of net/http. It hands the answer on in the context of the request (AgentOf), and answers 403 where allows
// says no; nil lets every request through. The refused request is not told why. An error, such as for a wrong key, is answered by 500.
func AgentHandler(client Consent, options AgentOptions, allows func(AgentAnswer) bool, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, err := client.Agent(r.Context(), r, options)
		switch {
		case err != nil:
			http.Error(w, `{"error":"internal"}`, http.StatusInternalServerError)
		case allows != nil && !allows(answer):
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusForbidden)
			// The client may have closed the connection.
			_, _ = w.Write([]byte(`{"error":"agent-refused"}`))
		default:
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), agentKey{}, &answer)))
		}
	})
}
