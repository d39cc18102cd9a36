package consent

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// OnUnavailable is the result of a check that cannot be decided.
type OnUnavailable string

const (
	// DenyUnavailable returns a denial with reason "unavailable".
	DenyUnavailable OnUnavailable = "deny"
	// RaiseUnavailable returns an error.
	RaiseUnavailable OnUnavailable = "error"
)

// Options of a client. A zero field takes its default.
type Options struct {
	// URL is gpd's base address, such as https://id.shop.example.
	URL string
	// URLs are tried in their order; they replace URL.
	URLs []string
	// Key is an API key of the tenant, gpd_sk_….
	Key string `json:"-"`
	// Timeout is the total time of a reading call with its retries; by default 2 s.
	Timeout time.Duration
	// WriteTimeout is the total time of a writing call; by default 10 s.
	WriteTimeout time.Duration
	// Retries are attempts after the first; by default 2. Use Retries(0) for none.
	Retries *int
	// OnUnavailable is DenyUnavailable by default.
	OnUnavailable OnUnavailable
	// CookieDomain is the data-domain of your banner, such as .shop.example, for the cookies that CurrentState and May return.
	CookieDomain string
	// Now is the clock for the age of cookies; time.Now by default.
	Now func() time.Time
	// OnError is called with the error of each call that failed, also if it became a denial: for your log.
	OnError func(*Error)
	// Transport replaces the client's transport, for instance to use a proxy. Close does not close its connections.
	Transport http.RoundTripper
	// Getenv reads the variables for FromEnv; os.Getenv by default.
	Getenv func(string) string
}

// Retries returns a value for Options.Retries.
func Retries(count int) *int { return &count }

// Format never prints the key.
func (Options) Format(state fmt.State, _ rune) { fmt.Fprint(state, "consent.Options") }

type settings struct {
	// bases has at least one.
	bases []string
	// A function, because fmt prints nested fields without calling their Format.
	key           func() string
	timeout       time.Duration
	writeTimeout  time.Duration
	retries       int
	onUnavailable OnUnavailable
	cookieDomain  string
	now           func() time.Time
	onError       func(*Error)
}

const (
	maxTimeout     = 10 * time.Minute
	maxCallTimeout = time.Minute
	maxRetries     = 10
)

var (
	visibleASCII = regexp.MustCompile(`^[\x21-\x7e]+$`)
	cookieDomain = regexp.MustCompile(`^\.?[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*$`)
)

func refuse(method, hint string) *Error { return hinted(method, KindConfig, hint) }

func baseOf(method, text string) (string, *Error) {
	parsed, err := url.Parse(text)
	plain := err == nil && parsed.User == nil && parsed.Hostname() != "" && hasPort(parsed) && !strings.ContainsAny(text, "?#")
	if !plain || (parsed.Scheme != "http" && parsed.Scheme != "https") {
		// Without the cause, which quotes the address.
		return "", refuse(method, "URL is an http or https address without user info, query and fragment")
	}
	return parsed.Scheme + "://" + parsed.Host + strings.TrimRight(parsed.EscapedPath(), "/"), nil
}

// hasPort is false for an impossible port; net/url accepts any digits.
func hasPort(of *url.URL) bool {
	text := of.Port()
	port, err := strconv.ParseUint(text, 10, 16)
	return text == "" || (err == nil && port > 0)
}

type callTimeout struct{}

// WithTimeout sets the timeout of calls with this context instead of the client's Timeout and WriteTimeout, shorter or longer: 1 ms to
// 1 min. A deadline of the context can only end a call earlier.
func WithTimeout(ctx context.Context, timeout time.Duration) context.Context {
	return context.WithValue(ctx, callTimeout{}, timeout)
}

func timeoutOf(ctx context.Context, name string, own time.Duration) (time.Duration, *Error) {
	timeout, isTold := ctx.Value(callTimeout{}).(time.Duration)
	if !isTold {
		return own, nil
	}
	if timeout < time.Millisecond || timeout > maxCallTimeout {
		return 0, refuse(name, "WithTimeout takes a time from 1 ms to 1 min")
	}
	return timeout, nil
}

func durationOf(method, name string, value, fallback time.Duration) (time.Duration, *Error) {
	if value == 0 {
		return fallback, nil
	}
	if value < time.Millisecond || value > maxTimeout {
		return 0, refuse(method, name+" is a time from 1 ms to 10 min")
	}
	return value, nil
}

func readOptions(method string, options Options) (settings, *Error) {
	if !visibleASCII.MatchString(options.Key) {
		return settings{}, refuse(method, "Key must be an API key of visible ASCII characters (GPD_CONSENT_KEY)")
	}
	urls := options.URLs
	if len(urls) == 0 {
		urls = []string{options.URL}
	}
	bases := make([]string, len(urls))
	for i, text := range urls {
		base, err := baseOf(method, text)
		if err != nil {
			return settings{}, err
		}
		bases[i] = base
	}
	timeout, err := durationOf(method, "Timeout", options.Timeout, 2*time.Second)
	if err != nil {
		return settings{}, err
	}
	writeTimeout, err := durationOf(method, "WriteTimeout", options.WriteTimeout, 10*time.Second)
	if err != nil {
		return settings{}, err
	}
	retries := 2
	if options.Retries != nil {
		retries = *options.Retries
	}
	if retries < 0 || retries > maxRetries {
		return settings{}, refuse(method, "Retries is an integer from 0 to 10")
	}
	onUnavailable := options.OnUnavailable
	switch onUnavailable {
	case "":
		onUnavailable = DenyUnavailable
	case DenyUnavailable, RaiseUnavailable:
	default:
		return settings{}, refuse(method, "OnUnavailable is DenyUnavailable or RaiseUnavailable")
	}
	if options.CookieDomain != "" && !cookieDomain.MatchString(options.CookieDomain) {
		return settings{}, refuse(method, "CookieDomain is a domain such as .shop.example")
	}
	now := options.Now
	if now == nil {
		now = time.Now
	}
	key := options.Key
	return settings{
		bases: bases, key: func() string { return key }, timeout: timeout, writeTimeout: writeTimeout, retries: retries,
		onUnavailable: onUnavailable, cookieDomain: options.CookieDomain, now: now, onError: options.OnError,
	}, nil
}

// withEnv copies the two variables into the options.
func withEnv(options Options) (Options, *Error) {
	getenv := options.Getenv
	if getenv == nil {
		getenv = os.Getenv
	}
	// White space parts several addresses.
	options.URLs, options.Key = strings.Fields(getenv("GPD_CONSENT_URL")), getenv("GPD_CONSENT_KEY")
	if len(options.URLs) == 0 {
		return options, refuse("FromEnv", "GPD_CONSENT_URL is not set")
	}
	if options.Key == "" {
		return options, refuse("FromEnv", "GPD_CONSENT_KEY is not set")
	}
	return options, nil
}
