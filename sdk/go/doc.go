// Package consent asks a gpd server whether personal data may be processed, records people's choices, and verifies proofs offline. A
// check that cannot be decided is denied.
//
//	client, err := consent.FromEnv(consent.Options{}) // GPD_CONSENT_URL, GPD_CONSENT_KEY
//	…
//	allowed, err := client.IsAllowed(ctx, consent.Check{PrincipalID: "u-1", Purpose: "newsletter"})
package consent

// Version is the version of this module.
const Version = "0.1.0"

const userAgent = "gpd-consent-go/" + Version
