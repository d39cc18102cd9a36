package visitor

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"math/big"
	"sync"
	"time"
)

const (
	ttl = 5 * time.Minute
	// refetch is the pause between two fetches, because anybody can send a cookie with an unknown key id.
	refetch = time.Minute
	// retry is the pause after a fetch that failed while no key is known.
	retry = 5 * time.Second
)

// Keys are those of GET /v1/consent/state-keys for ES256, and the tenant of the API key.
type Keys struct {
	Tenant string
	byID   map[string]*ecdsa.PublicKey
}

// ReadKeys returns false for a malformed answer. Keys of other kinds are passed over.
func ReadKeys(answer map[string]any) (Keys, bool) {
	tenant, hasTenant := answer["tenant"].(string)
	list, hasKeys := answer["keys"].([]any)
	keys := Keys{tenant, map[string]*ecdsa.PublicKey{}}
	for _, item := range list {
		jwk, _ := item.(map[string]any)
		if id, ok := jwk["kid"].(string); ok && isForStates(jwk) {
			x, _ := jwk["x"].(string)
			y, _ := jwk["y"].(string)
			keys.add(id, decodePart(x), decodePart(y))
		}
	}
	return keys, hasTenant && hasKeys
}

func isForStates(jwk map[string]any) bool {
	alg, hasAlg := jwk["alg"]
	use, hasUse := jwk["use"]
	return jwk["kty"] == "EC" && jwk["crv"] == "P-256" && (!hasAlg || alg == "ES256") && (!hasUse || use == "sig")
}

func (k *Keys) add(id string, x, y []byte) {
	if len(x) == 32 && len(y) == 32 {
		// ecdsa.Verify refuses a point that is not on the curve.
		k.byID[id] = &ecdsa.PublicKey{Curve: elliptic.P256(), X: new(big.Int).SetBytes(x), Y: new(big.Int).SetBytes(y)}
	}
}

// KeysOf returns the keys of a fake, which has one.
func KeysOf(tenant, id string, key *ecdsa.PublicKey) Keys {
	return Keys{tenant, map[string]*ecdsa.PublicKey{id: key}}
}

type keyCache struct {
	mutex     sync.Mutex
	isKnown   bool
	known     Keys
	fetchedAt time.Time
	triedAt   time.Time
	failure   error
}

// hasPassed is true if that much time has passed. A clock that was set back does not stop it.
func hasPassed(since time.Time, pause time.Duration, now time.Time) bool {
	return since.IsZero() || now.Before(since) || !now.Before(since.Add(pause))
}

// begin is true if the keys have to be fetched now, by the caller.
func (c *keyCache) begin(keyID string, now time.Time) bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if !c.isKnown {
		return hasPassed(c.triedAt, retry, now)
	}
	isWanted := c.known.byID[keyID] == nil || hasPassed(c.fetchedAt, ttl, now)
	if !isWanted || !hasPassed(c.triedAt, refetch, now) {
		return false
	}
	// Set before the call, so that other requests go on with the known keys meanwhile.
	c.triedAt = now
	return true
}

// end keeps known keys in use when a fetch failed.
func (c *keyCache) end(keys Keys, failure error, now time.Time) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if failure == nil {
		c.isKnown, c.known, c.fetchedAt = true, keys, now
	}
	c.failure, c.triedAt = failure, now
}

func (c *keyCache) find(keyID string) (tenant string, key *ecdsa.PublicKey, failure error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.known.Tenant, c.known.byID[keyID], c.failure
}

// verify fails if the key could not be fetched.
func (v *Visitors) verify(ctx context.Context, method string, state *Signed, now time.Time) (bool, error) {
	if v.keys.begin(state.keyID, now) {
		keys, err := v.Calls.FetchKeys(ctx, method)
		if err != nil && !v.IsUndecided(err) {
			return false, err
		}
		v.keys.end(keys, err, now)
	}
	tenant, key, failure := v.keys.find(state.keyID)
	if key == nil {
		return false, failure
	}
	digest := sha256.Sum256([]byte(state.message))
	return tenant == state.tenant && ecdsa.Verify(key, digest[:], state.r, state.s), nil
}
