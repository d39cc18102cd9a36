package consent

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

// One call: a deadline, attempts and waits inside it, and a body or an error at the end (SPEC.md sections 3 to 5).

type call struct {
	// name is the method, for errors.
	name      string
	operation string
	path      string
	body      []byte
	// token of a person, in place of the key.
	token string
	// key is the Idempotency-Key.
	key string
	// secrets are principal ids and tokens that no error may contain.
	secrets []string
}

func (c call) row() operation { return operations[c.operation] }

func (c call) maxBody() int {
	if c.operation == "exportLog" {
		return exportBody
	}
	return smallBody
}

type answer struct {
	status int
	// body is nil if it was coded or larger than maxBody.
	body      []byte
	requestID string
}

// failure is the error of an attempt, and how it may be repeated.
type failure struct {
	err     *Error
	isFinal bool
	// isStale means that the connection was closed before the first byte of an answer.
	isStale bool
	// wasReplayed means that net/http has already used the one replay of the call.
	wasReplayed bool
}

type sender struct {
	settings settings
	http     http.RoundTripper
	// close closes the connections if they belong to the sender.
	close func()

	mutex  sync.Mutex
	closed bool
	// preferred is the place of the address that answered last.
	preferred int
	last      int
	running   map[int]context.CancelFunc
}

func newSender(of settings, custom http.RoundTripper) *sender {
	s := &sender{settings: of, http: custom, close: func() {}, running: map[int]context.CancelFunc{}}
	if custom == nil {
		own := newTransport()
		s.http, s.close = own, own.CloseIdleConnections
	}
	return s
}

// newTransport ignores proxy variables and keeps enough idle connections for many goroutines (net/http keeps 2 per host). With a
// custom dialer it uses HTTP/1.1.
func newTransport() *http.Transport {
	dialer := &net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}
	return &http.Transport{
		DialContext:         dialer.DialContext,
		MaxIdleConnsPerHost: 256,
		IdleConnTimeout:     90 * time.Second,
		TLSHandshakeTimeout: 10 * time.Second,
		DisableCompression:  true,
	}
}

// begin registers a call for shut; false if the client is closed.
func (s *sender) begin(cancel context.CancelFunc) (int, bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.closed {
		return 0, false
	}
	s.last++
	s.running[s.last] = cancel
	return s.last, true
}

func (s *sender) end(id int) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	delete(s.running, id)
}

func (s *sender) isClosed() bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.closed
}

// shut cancels running calls.
func (s *sender) shut() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.closed = true
	for _, cancel := range s.running {
		cancel()
	}
	s.close()
}

// send returns the answer, or fails with an *Error or with context.Canceled.
func (s *sender) send(parent context.Context, c call) (answer, error) {
	timeout, refused := timeoutOf(parent, c.name, s.timeOf(c))
	if refused != nil {
		return answer{}, refused
	}
	ctx, cancel := context.WithTimeout(parent, timeout)
	defer cancel()
	id, ok := s.begin(cancel)
	if !ok {
		return answer{}, coded(c.name, KindConfig, "closed")
	}
	defer s.end(id)
	if err := parent.Err(); err != nil {
		return answer{}, s.ended(parent, c)
	}
	got, err := s.attempts(ctx, c)
	if err == nil {
		return got, nil
	}
	if parent.Err() == context.Canceled || (ctx.Err() != nil && err.Status == 0) {
		return answer{}, s.tell(s.ended(parent, c))
	}
	return answer{}, s.tell(err)
}

func (s *sender) timeOf(c call) time.Duration {
	if c.row().isWrite {
		return s.settings.writeTimeout
	}
	return s.settings.timeout
}

// tell shows an error to the hook of the caller.
func (s *sender) tell(err error) error {
	if failure, ok := err.(*Error); ok && s.settings.onError != nil {
		s.settings.onError(failure)
	}
	return err
}

// first returns the place of the address to begin with, and prefer changes it.
func (s *sender) first() int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.preferred
}

func (s *sender) prefer(place int) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.preferred = place % len(s.settings.bases)
}

// ended returns the reason why the context of a call has ended.
func (s *sender) ended(parent context.Context, c call) error {
	if parent.Err() == context.Canceled {
		return context.Canceled
	}
	if s.isClosed() {
		return coded(c.name, KindConfig, "closed")
	}
	return plain(c.name, KindTimeout)
}

func (s *sender) attempts(ctx context.Context, c call) (answer, *Error) {
	header := s.headerOf(c)
	deadline, _ := ctx.Deadline()
	bases := s.settings.bases
	replayed := false
	at, tried := s.first(), 1
	for retry := 1; ; {
		got, failed := s.attempt(ctx, c, header, bases[at])
		if failed == nil {
			s.prefer(at)
			return got, nil
		}
		if ctx.Err() == context.DeadlineExceeded {
			// An address that lets everybody wait is not the first of the next call.
			s.prefer(at + 1)
		}
		if failed.isFinal || ctx.Err() != nil {
			return answer{}, failed.err
		}
		replayed = replayed || failed.wasReplayed
		if failed.isStale && !replayed {
			replayed = true
			continue
		}
		if failed.err.Status == 0 || failed.err.Status >= 500 {
			at = (at + 1) % len(bases)
			if tried < len(bases) {
				tried++
				continue
			}
		}
		// A nonce is used up by the first attempt that reached gpd.
		if retry > s.settings.retries || c.operation == "agent" {
			return answer{}, failed.err
		}
		wait, ok := waitBefore(retry, failed.err.RetryAfterSeconds, time.Until(deadline), chance())
		if !ok {
			return answer{}, failed.err
		}
		if !sleep(ctx, wait) {
			return answer{}, plain(c.name, KindTimeout)
		}
		retry++
		tried = 1
	}
}

// sleep returns false if the context ended it.
func sleep(ctx context.Context, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
