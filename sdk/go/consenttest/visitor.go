package consenttest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	consent "gpd.dev/consent-go"
	"gpd.dev/consent-go/internal/rules"
	"gpd.dev/consent-go/internal/visitor"
)

const (
	tenant = "fake"
	keyID  = "fake-key"
)

// signer signs the states of a fake with a key that only this fake has.
type signer struct {
	key *ecdsa.PrivateKey
	// principals by their reference.
	principals map[string]string
}

func newSigner() *signer {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic("consenttest: the system has no source of chance")
	}
	return &signer{key, map[string]string{}}
}

func encode(value any) string {
	// Texts and integers cannot fail to encode.
	text, _ := json.Marshal(value)
	return base64.RawURLEncoding.EncodeToString(text)
}

func (s *signer) sign(principalID string, purposes []string, seq int64, now time.Time) string {
	digest := sha256.Sum256([]byte("fake subject " + principalID))
	subject := hex.EncodeToString(digest[:])
	s.principals[subject] = principalID
	claims := map[string]any{
		"iss": "https://fake.example", "kid": tenant, "sub": subject,
		"iat": now.Unix(), "exp": now.Unix() + 300, "p": purposes, "seq": seq,
	}
	message := encode(map[string]string{"alg": "ES256", "kid": keyID, "typ": "JWT"}) + "." + encode(claims)
	digest = sha256.Sum256([]byte(message))
	r, t, err := ecdsa.Sign(rand.Reader, s.key, digest[:])
	if err != nil {
		panic("consenttest: the system has no source of chance")
	}
	signature := make([]byte, 64)
	r.FillBytes(signature[:32])
	t.FillBytes(signature[32:])
	return message + "." + base64.RawURLEncoding.EncodeToString(signature)
}

func newVisitors(fake *Fake) *visitor.Visitors {
	isKind := func(kind consent.Kind) func(error) bool {
		return func(err error) bool {
			var failure *consent.Error
			return errors.As(err, &failure) && failure.Kind == kind
		}
	}
	return &visitor.Visitors{
		Calls: visitorCalls{fake},
		Now: func() time.Time {
			fake.mutex.Lock()
			defer fake.mutex.Unlock()
			return fake.now()
		},
		Denies:      fake.onUnavailable != consent.RaiseUnavailable,
		IsUndecided: isKind(consent.KindNetwork),
		IsGone:      isKind(consent.KindNotFound),
	}
}

// CookieFor returns a Cookie header as this person's browser would send it now. Later it is as old as the clock of SetNow says.
func (f *Fake) CookieFor(principalID string) string {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	purposes, seq := f.log.visitorState(principalID, false)
	return "gpd_consent=" + f.signer.sign(principalID, purposes, seq, f.now())
}

func (f *Fake) ReadState(ctx context.Context, cookieHeader string) (*consent.VisitorState, error) {
	if err := f.begin(ctx, "ReadState", "", cookieHeader); err != nil {
		return nil, err
	}
	f.mutex.Unlock()
	state, err := f.visitors.Read(ctx, cookieHeader)
	if err != nil || state.Seq == nil {
		return nil, err
	}
	return &consent.VisitorState{Purposes: state.Purposes, Seq: *state.Seq, At: *state.At}, nil
}

func (f *Fake) CurrentState(ctx context.Context, cookieHeader string) (consent.CurrentState, error) {
	const name = "CurrentState"
	if err := f.begin(ctx, name, "", cookieHeader); err != nil {
		return consent.CurrentState{}, err
	}
	f.mutex.Unlock()
	state, err := f.visitors.Current(ctx, name, cookieHeader)
	return consent.CurrentState(state), err
}

func (f *Fake) May(ctx context.Context, r *http.Request, ask consent.Ask) (consent.Permissions, error) {
	if err := f.begin(ctx, "May", rules.Page(r, ask.Purposes, ask.PrincipalID), r, ask); err != nil {
		return consent.Permissions{}, err
	}
	f.mutex.Unlock()
	purposes, setCookie, err := f.visitors.May(ctx, r, ask.Purposes, ask.PrincipalID)
	return consent.Permissions{Purposes: purposes, SetCookie: setCookie}, err
}

// visitorCalls keeps the calls out of the methods of Fake.
type visitorCalls struct{ fake *Fake }

// reach locks the fake; it fails when the server is down.
func (v visitorCalls) reach(method string) error {
	v.fake.mutex.Lock()
	if v.fake.isUnavailable {
		v.fake.mutex.Unlock()
		return failure(method, consent.KindNetwork)
	}
	return nil
}

func (v visitorCalls) FetchKeys(_ context.Context, method string) (visitor.Keys, error) {
	if err := v.reach(method); err != nil {
		return visitor.Keys{}, err
	}
	defer v.fake.mutex.Unlock()
	return visitor.KeysOf(tenant, keyID, &v.fake.signer.key.PublicKey), nil
}

func (v visitorCalls) Refresh(_ context.Context, method string, state *visitor.Signed, gpc bool) (visitor.Refreshed, error) {
	if err := v.reach(method); err != nil {
		return visitor.Refreshed{}, err
	}
	defer v.fake.mutex.Unlock()
	principalID := v.fake.signer.principals[state.Subject]
	purposes, seq := v.fake.log.visitorState(principalID, gpc)
	if seq == 0 {
		// gpd does not know a person who has never chosen.
		return visitor.Refreshed{}, notFound(method, "no-data")
	}
	signed := visitor.Parse(v.fake.signer.sign(principalID, purposes, seq, v.fake.now()))
	return visitor.Refreshed{Signed: signed, Purposes: purposes, Seq: seq}, nil
}

func (v visitorCalls) Allowed(_ context.Context, method, principalID string, purposes []string) ([]bool, error) {
	v.fake.mutex.Lock()
	defer v.fake.mutex.Unlock()
	allowed := make([]bool, len(purposes))
	for i, purpose := range purposes {
		decision, err := v.fake.decide(method, consent.Check{PrincipalID: principalID, Purpose: purpose})
		if err != nil {
			return nil, err
		}
		allowed[i] = decision.Allowed
	}
	return allowed, nil
}
