package consent

import (
	"context"
	"errors"
	"time"
)

// Advice is a verdict as advice to a checkout. It never refuses.
type Advice string

const (
	Proceed   Advice = "proceed"
	StepUp    Advice = "step-up"
	NoVerdict Advice = "no-verdict"
)

const (
	defaultDeadline = 500 * time.Millisecond
	// A visitor can send the id of an old visit. The page calls identify or update again at the checkout.
	maxVerdictAge = 30 * time.Minute
)

// CheckoutOptions say more about a checkout.
type CheckoutOptions struct {
	// Deadline is the longest time that buying waits for gpd, from 1 ms to a minute; 0 means half a second.
	Deadline time.Duration
	// Context is the order, as the page named it in identify({context}): a verdict for another is none. "" compares nothing.
	Context string
}

// Checkout advises a checkout by the verdict of this visit. NoVerdict if gpd has none of the last 30 minutes or does not answer in time:
// the sale goes on without gpd. RequestID is what the page sent; any text. The error is that of a deadline out of range or of a cancelled
// context, and nothing else.
func (c *Client) Checkout(ctx context.Context, requestID string, options CheckoutOptions) (Advice, error) {
	deadline := options.Deadline
	if deadline == 0 {
		deadline = defaultDeadline
	}
	if deadline < time.Millisecond || deadline > time.Minute {
		return NoVerdict, hinted("Checkout", KindInvalidRequest, "deadline is a time from 1 ms to a minute")
	}
	verdict, err := c.Decision(WithTimeout(ctx, deadline), requestID)
	switch {
	case errors.Is(err, context.Canceled):
		return NoVerdict, err
	case err != nil:
		return NoVerdict, nil
	}
	return adviceOf(verdict, c.settings.now(), options.Context), nil
}

func adviceOf(verdict Verdict, now time.Time, context string) Advice {
	at, err := time.Parse(time.RFC3339, verdict.DecidedAt)
	switch {
	case context != "" && verdict.Fields["context"] != context:
		return NoVerdict
	// A verdict under an objection must not be acted on.
	case err != nil, verdict.Restricted, now.Sub(at) > maxVerdictAge:
		return NoVerdict
	case verdict.Class == "human":
		return Proceed
	}
	return StepUp
}
