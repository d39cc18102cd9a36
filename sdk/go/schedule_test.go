package consent

import (
	"testing"
	"time"
)

func TestJitterIsBelowABoundThatDoublesUpToASecond(t *testing.T) {
	bounds := map[int]time.Duration{1: 100, 2: 200, 3: 400, 4: 800, 5: 1000, 10: 1000}
	for retry, ms := range bounds {
		bound := ms * time.Millisecond
		if jitter(retry, 0) != 0 || jitter(retry, 0.5) != bound/2 || jitter(retry, 0.999) >= bound {
			t.Errorf("retry %d: %v %v %v", retry, jitter(retry, 0), jitter(retry, 0.5), jitter(retry, 0.999))
		}
	}
}

func TestWaitIsRetryAfterAndJitterInsideTheBudget(t *testing.T) {
	one, two := 1, 2
	cases := []struct {
		retry     int
		seconds   *int
		remaining time.Duration
		random    float64
		wait      time.Duration
		ok        bool
	}{
		{1, &one, 2 * time.Second, 0.5, 1050 * time.Millisecond, true},
		{1, nil, 2 * time.Second, 0.5, 50 * time.Millisecond, true},
		{1, &two, 2 * time.Second, 0, 2 * time.Second, false},
		{1, &two, 2*time.Second + time.Millisecond, 0, 2 * time.Second, true},
		{2, nil, 100 * time.Millisecond, 0.5, 100 * time.Millisecond, false},
	}
	for _, one := range cases {
		wait, ok := waitBefore(one.retry, one.seconds, one.remaining, one.random)
		if wait != one.wait || ok != one.ok {
			t.Errorf("%+v: %v %v", one, wait, ok)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	whole := map[string]int{
		"0": 0, " 30 ": 30, "Fri, 20 Nov 2026 10:00:30 GMT": 30, "Fri, 20 Nov 2026 09:00:00 GMT": 0,
	}
	for value, seconds := range whole {
		if got := retryAfter(value, now); got == nil || *got != seconds {
			t.Errorf("%q: %v", value, got)
		}
	}
	for _, value := range []string{"", "-1", "1.5", "soon", "99999999999", "Fri, never"} {
		if got := retryAfter(value, now); got != nil {
			t.Errorf("%q: %d", value, *got)
		}
	}
}

func TestChanceIsBelowOneAndNotAlwaysTheSame(t *testing.T) {
	seen := map[float64]bool{}
	for i := 0; i < 100; i++ {
		value := chance()
		if value < 0 || value >= 1 {
			t.Fatal(value)
		}
		seen[value] = true
	}
	if len(seen) < 90 {
		t.Errorf("%d of 100 differ", len(seen))
	}
}
