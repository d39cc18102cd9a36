package consent

import (
	"crypto/rand"
	"encoding/binary"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Computes when the next attempt starts (SPEC.md section 4).

const (
	jitterBase = 100 * time.Millisecond
	jitterCap  = time.Second
)

// jitter returns full jitter; retry is 1 for the first, random is in [0, 1).
func jitter(retry int, random float64) time.Duration {
	bound := jitterCap
	if retry <= 4 {
		bound = jitterBase << (retry - 1)
	}
	return time.Duration(random * float64(bound))
}

var wholeSeconds = regexp.MustCompile(`^\d{1,9}$`)

// retryAfter returns seconds from now, or nil for an invalid header.
func retryAfter(value string, now time.Time) *int {
	value = strings.TrimSpace(value)
	if wholeSeconds.MatchString(value) {
		seconds, _ := strconv.Atoi(value)
		return &seconds
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return nil
	}
	seconds := 0
	if wait := at.Sub(now); wait > 0 {
		seconds = int((wait + time.Second - 1) / time.Second)
	}
	return &seconds
}

// waitBefore returns the time to wait; false if that would reach the deadline.
func waitBefore(retry int, seconds *int, remaining time.Duration, random float64) (time.Duration, bool) {
	wait := jitter(retry, random)
	if seconds != nil {
		wait += time.Duration(*seconds) * time.Second
	}
	return wait, wait < remaining
}

// chance uses the system's random numbers: before Go 1.20 math/rand starts with the same seed in every process.
func chance() float64 {
	var bytes [8]byte
	if _, err := rand.Read(bytes[:]); err != nil {
		return 0
	}
	return float64(binary.BigEndian.Uint64(bytes[:])>>11) / (1 << 53)
}
