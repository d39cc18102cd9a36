//go:build go1.21

package consent

import (
	"fmt"
	"log/slog"
)

// LogValue is what Format prints: a handler that writes JSON would otherwise write the token.
func (s Session) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(s)) }
