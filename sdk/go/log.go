//go:build go1.21

package consent

import (
	"fmt"
	"log/slog"
)

// LogValue returns the text of Format: a handler that writes JSON would otherwise write the token.
func (s Session) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(s)) }
