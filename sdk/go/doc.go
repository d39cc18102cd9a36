// Package consent asks a gpd server whether personal data may be processed, records what people say, and verifies proofs
// offline. What could not be decided is denied.
//
//	client, err := consent.FromEnv(consent.Options{}) // GPD_CONSENT_URL, GPD_CONSENT_KEY
//	…
//	allowed, err := client.IsAllowed(ctx, consent.Check{PrincipalID: "u-1", Purpose: "newsletter"})
package consent

// Version of this module.
const Version = "0.1.0"

const userAgent = "gpd-consent-go/" + Version
