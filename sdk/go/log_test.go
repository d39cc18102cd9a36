//go:build go1.21

package consent_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	consent "gpd.dev/consent-go"
)

func TestALogHasNoToken(t *testing.T) {
	var told bytes.Buffer
	session := consent.Session{Token: "gpd_ps_secret", PrincipalID: "someone", ExpiresAt: "later"}
	slog.New(slog.NewJSONHandler(&told, nil)).Info("opened", "session", session)
	if strings.Contains(told.String(), "gpd_ps_secret") || strings.Contains(told.String(), "someone") {
		t.Error(told.String())
	}
}
