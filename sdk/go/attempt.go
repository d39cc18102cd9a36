package consent

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptrace"
	"regexp"
	"strings"
	"sync/atomic"
	"time"
)

// One attempt of a call, and the error of its answer.

const (
	smallBody  = 4 << 20
	exportBody = 256 << 20
)

func (s *sender) headerOf(c call) http.Header {
	header := http.Header{"User-Agent": {userAgent}, "Accept": {c.row().accept}, "Accept-Encoding": {"identity"}}
	// A RoundTripper that caches would answer a check after its withdrawal.
	header["Cache-Control"] = []string{"no-store"}
	if c.token != "" {
		header["Authorization"] = []string{"Bearer " + c.token}
	} else if c.operation != "ping" {
		header["Authorization"] = []string{"Bearer " + s.settings.key()}
	}
	if c.key != "" {
		header["Idempotency-Key"] = []string{c.key}
	}
	if c.body != nil {
		header["Content-Type"] = []string{"application/json"}
	}
	return header
}

// attempt uses a RoundTripper, which follows no redirect and keeps no cookie.
func (s *sender) attempt(ctx context.Context, c call, header http.Header, base string) (answer, *failure) {
	var connections atomic.Int32
	var hasBegun atomic.Bool
	trace := &httptrace.ClientTrace{
		GotConn:              func(httptrace.GotConnInfo) { connections.Add(1) },
		GotFirstResponseByte: func() { hasBegun.Store(true) },
	}
	var body io.Reader
	if c.body != nil {
		body = bytes.NewReader(c.body)
	}
	request, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, trace), c.row().verb, base+c.path, body)
	if err != nil {
		return answer{}, &failure{err: plain(c.name, KindConfig), isFinal: true}
	}
	request.Header = header
	response, err := s.http.RoundTrip(request)
	if err != nil {
		isStale := connections.Load() > 0 && !hasBegun.Load()
		wasReplayed := connections.Load() > 1
		return answer{}, &failure{err: broken(c.name, err), isStale: isStale, wasReplayed: wasReplayed}
	}
	defer response.Body.Close()
	return s.read(c, response)
}

func (s *sender) read(c call, response *http.Response) (answer, *failure) {
	var body []byte
	// After status 101 the connection belongs to another protocol and never ends.
	if response.StatusCode != http.StatusSwitchingProtocols {
		var err error
		if body, err = readBody(response, c.maxBody()); err != nil {
			return answer{}, &failure{err: broken(c.name, err)}
		}
	}
	requestID := s.requestIDOf(c, response)
	for _, status := range c.row().statuses {
		if response.StatusCode == status {
			return answer{status, body, requestID}, nil
		}
	}
	kind := kindOfStatus(response.StatusCode)
	err := &Error{
		Method:            c.name,
		Kind:              kind,
		Code:              s.codeOf(c, kind, body),
		Status:            response.StatusCode,
		RequestID:         requestID,
		RetryAfterSeconds: retryAfter(response.Header.Get("Retry-After"), time.Now()),
	}
	if response.StatusCode == http.StatusProxyAuthRequired {
		err.Detail = DetailProxy
	}
	return answer{}, &failure{err: err, isFinal: !retried[response.StatusCode]}
}

// isCoded is true for a coded body, which the client did not ask for and not every language can decode.
func isCoded(response *http.Response) bool {
	coding := strings.ToLower(strings.TrimSpace(response.Header.Get("Content-Encoding")))
	return response.Uncompressed || (coding != "" && coding != "identity")
}

func readBody(response *http.Response, maxBody int) ([]byte, error) {
	if isCoded(response) {
		return nil, nil
	}
	var buffer bytes.Buffer
	if length := response.ContentLength; length > 0 && length <= smallBody {
		buffer.Grow(int(length) + bytes.MinRead)
	}
	if _, err := buffer.ReadFrom(io.LimitReader(response.Body, int64(maxBody)+1)); err != nil {
		return nil, err
	}
	if buffer.Len() > maxBody {
		return nil, nil
	}
	return buffer.Bytes(), nil
}

var (
	errorCode     = regexp.MustCompile(`^[a-z][a-z0-9-]{0,63}$`)
	wireRequestID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
)

func (s *sender) codeOf(c call, kind Kind, body []byte) string {
	code, _ := parseObject(body)["error"].(string)
	if errorCode.MatchString(code) && !s.tells(c, code) {
		return code
	}
	return string(kind)
}

func (s *sender) requestIDOf(c call, response *http.Response) string {
	id := response.Header.Get("X-Request-Id")
	if wireRequestID.MatchString(id) && !s.tells(c, id) {
		return id
	}
	return ""
}

// tells is true if the text contains a secret of the call: a proxy may echo it. Short principal ids are compared as a whole, because
// many words contain them.
func (s *sender) tells(c call, text string) bool {
	const minContained = 4
	for _, secret := range append([]string{s.settings.key()}, c.secrets...) {
		if text == secret || (len(secret) >= minContained && strings.Contains(text, secret)) {
			return true
		}
	}
	return false
}
