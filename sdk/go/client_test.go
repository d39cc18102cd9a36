package consent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	consent "gpd.dev/consent-go"
)

const (
	secretKey = "gpd_sk_kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk"
	granted   = `{"allowed":true,"reason":"granted","proof":{"seq":1,"hash":"` +
		`abababababababababababababababababababababababababababababababab"}}`
)

var someone = consent.Check{PrincipalID: "someone@shop.example", Purpose: "newsletter"}

type roundTrip func(*http.Request) (*http.Response, error)

func (r roundTrip) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

func hangs(request *http.Request) (*http.Response, error) {
	<-request.Context().Done()
	return nil, request.Context().Err()
}

func answers(status int, body io.Reader, length int64) roundTrip {
	return func(*http.Request) (*http.Response, error) {
		header := http.Header{}
		return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(body), ContentLength: length}, nil
	}
}

func clientOf(t *testing.T, options consent.Options) *consent.Client {
	t.Helper()
	if options.URL == "" {
		options.URL = "http://127.0.0.1:1"
	}
	options.Key = secretKey
	client, err := consent.New(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

func codeOf(err error) string {
	var failure *consent.Error
	if errors.As(err, &failure) {
		return string(failure.Kind) + " " + failure.Code
	}
	return fmt.Sprint(err)
}

func TestNothingShowsTheKey(t *testing.T) {
	client := clientOf(t, consent.Options{Transport: roundTrip(hangs)})
	options := consent.Options{Key: secretKey}
	for _, value := range []any{client, options, &options, *client.Sessions, struct{ C *consent.Client }{client}} {
		told := fmt.Sprintf("%v %+v %#v %s %q", value, value, value, value, value)
		text, _ := json.Marshal(value)
		if strings.Contains(told, secretKey) || strings.Contains(string(text), secretKey) {
			t.Errorf("it tells the key: %s %s", told, text)
		}
	}
}

func TestSessionsAndWebhookOptionsPrintNoSecret(t *testing.T) {
	const secret = "gpd_ps_ssssssssssssssssssssssssssssssssssssssssss"
	session := consent.Session{Token: secret, PrincipalID: secret, ExpiresAt: "later"}
	options := consent.WebhookOptions{Secrets: []string{secret}}
	for _, value := range []any{session, &session, options, &options, []consent.Session{session}} {
		if told := fmt.Sprintf("%v %+v %#v %s %q %d", value, value, value, value, value, value); strings.Contains(told, secret) {
			t.Errorf("it prints a secret: %s", told)
		}
	}
	if text, _ := json.Marshal(options); strings.Contains(string(text), secret) {
		t.Errorf("its JSON has a secret: %s", text)
	}
	if text, _ := json.Marshal(session); !strings.Contains(string(text), secret) {
		t.Errorf("a browser gets no token: %s", text)
	}
}

func TestTheTimeOfACallHasItsBounds(t *testing.T) {
	client := clientOf(t, consent.Options{Transport: answers(200, strings.NewReader(granted), -1)})
	for _, timeout := range []time.Duration{0, -1, time.Minute + 1} {
		_, err := client.CanProcess(consent.WithTimeout(context.Background(), timeout), someone)
		if codeOf(err) != "config config" {
			t.Errorf("%s: %v", timeout, err)
		}
	}
}

func TestMoreThan4MiBIsMalformed(t *testing.T) {
	large := granted + strings.Repeat(" ", 4<<20)
	for _, length := range []int64{-1, int64(len(large))} {
		client := clientOf(t, consent.Options{Transport: answers(200, strings.NewReader(large), length)})
		decision, err := client.CanProcess(context.Background(), someone)
		if err != nil || decision.Allowed || codeOf(decision.Err) != "response response" {
			t.Errorf("%d: %v %v", length, decision, err)
		}
	}
}

func TestAnotherProtocolIsNotReadToItsEnd(t *testing.T) {
	reader, _ := io.Pipe()
	client := clientOf(t, consent.Options{Transport: answers(101, reader, -1)})
	if _, err := client.Ping(context.Background()); codeOf(err) != "response response" {
		t.Error(err)
	}
}

func TestCloseEndsWhatIsRunning(t *testing.T) {
	started := make(chan bool)
	client := clientOf(t, consent.Options{Transport: roundTrip(func(request *http.Request) (*http.Response, error) {
		close(started)
		return hangs(request)
	})})
	go func() {
		<-started
		client.Close()
	}()
	if _, err := client.IsAllowed(context.Background(), someone); codeOf(err) != "config closed" {
		t.Error(err)
	}
}

func TestACancelledContextAsksNothing(t *testing.T) {
	calls := 0
	client := clientOf(t, consent.Options{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
		calls++
		return nil, errors.New("broken")
	})})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := client.IsAllowed(ctx, someone); err != context.Canceled || calls != 0 {
		t.Error(err, calls)
	}
}

func TestAnExpiredContextIsATimeout(t *testing.T) {
	client := clientOf(t, consent.Options{Transport: roundTrip(hangs)})
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	decision, err := client.CanProcess(ctx, someone)
	if err != nil || decision.Allowed || codeOf(decision.Err) != "timeout timeout" {
		t.Error(decision, err)
	}
	if _, err := client.State(ctx, "u-1"); codeOf(err) != "timeout timeout" {
		t.Error(err)
	}
}

func TestTheCauseOfABrokenConnectionIsNotTold(t *testing.T) {
	client := clientOf(t, consent.Options{Transport: roundTrip(func(request *http.Request) (*http.Response, error) {
		return nil, fmt.Errorf("no way to %s with %s", request.URL, request.Header.Get("Authorization"))
	}), Retries: consent.Retries(0)})
	_, err := client.State(context.Background(), "u-1")
	if told := fmt.Sprintf("%+v %#v", err, err); strings.Contains(told, secretKey) || codeOf(err) != "network network" {
		t.Error(told)
	}
}

func TestTwoIdsDoNotBecomeOne(t *testing.T) {
	client := clientOf(t, consent.Options{Transport: roundTrip(hangs)})
	broken := consent.Check{PrincipalID: "a\xff", Purpose: "newsletter"}
	if _, err := client.IsAllowed(context.Background(), broken); codeOf(err) != "invalid-request invalid-request" {
		t.Error(err)
	}
	one := int64(1)
	many := []consent.Check{{PrincipalID: "a", Purpose: "b", MinSeq: &one}}
	if _, err := client.CanProcessMany(context.Background(), many); codeOf(err) != "invalid-request invalid-request" {
		t.Error(err)
	}
}

func TestWhatWasGivenIsSentAlsoWhenItIsZero(t *testing.T) {
	var sent string
	client := clientOf(t, consent.Options{Transport: roundTrip(func(request *http.Request) (*http.Response, error) {
		body, _ := io.ReadAll(request.Body)
		sent = string(body)
		return nil, errors.New("broken")
	}), Retries: consent.Retries(0)})
	no, zero := false, int64(0)
	write := consent.Write{PrincipalID: "u", Purposes: []string{"p"}, GPC: &no, PolicyVersion: &zero}
	client.Grant(context.Background(), write)
	if sent != `{"principalId":"u","purposes":["p"],"policyVersion":0,"gpc":false}` {
		t.Error(sent)
	}
}

// net/http itself replays a request with an Idempotency-Key on a reused connection: that counts as the one replay of the call.
func TestAWriteIsReplayedOnceAlsoByNetHTTP(t *testing.T) {
	var requests int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if atomic.AddInt32(&requests, 1) == 1 {
			io.WriteString(w, granted)
			return
		}
		connection, _, _ := w.(http.Hijacker).Hijack()
		connection.(*net.TCPConn).SetLinger(0)
		connection.Close()
	}))
	defer server.Close()
	client := clientOf(t, consent.Options{URL: server.URL, Retries: consent.Retries(0)})
	if allowed, err := client.IsAllowed(context.Background(), someone); !allowed || err != nil {
		t.Fatal(allowed, err)
	}
	_, err := client.Grant(context.Background(), consent.Write{PrincipalID: "u", Purposes: []string{"p"}})
	if codeOf(err) != "network network" || atomic.LoadInt32(&requests) != 3 {
		t.Error(err, requests)
	}
}

// By default net/http keeps two idle connections per host: of 40 goroutines, 38 would connect again in each round.
func TestManyGoroutinesKeepTheirConnections(t *testing.T) {
	var connections int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(20 * time.Millisecond)
		io.WriteString(w, granted)
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			atomic.AddInt32(&connections, 1)
		}
	}
	server.Start()
	defer server.Close()
	const many = 40
	client := clientOf(t, consent.Options{URL: server.URL})
	for round := 0; round < 5; round++ {
		var group sync.WaitGroup
		for i := 0; i < many; i++ {
			group.Add(1)
			go func() {
				defer group.Done()
				if allowed, err := client.IsAllowed(context.Background(), someone); !allowed || err != nil {
					t.Error(allowed, err)
				}
			}()
		}
		group.Wait()
	}
	if count := atomic.LoadInt32(&connections); count > 2*many {
		t.Errorf("%d connections for %d goroutines", count, many)
	}
}
