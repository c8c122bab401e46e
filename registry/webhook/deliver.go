package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Limits of attempts to deliver an event. The waits between all attempts add up to about half a
// day.
const (
	maxAttempts = 20
	firstWait   = 5 * time.Second // doubled with each attempt
	longestWait = time.Hour
	sendTimeout = 10 * time.Second
	maxTurn     = 20 * time.Second // of one webhook, before the others get theirs
	maxTold     = 300              // bytes of a response that are kept
)

// errGone means that the receiver unsubscribed.
var errGone = errors.New("it answered 410 Gone")

// catchUp delivers events in order until all are delivered, a delivery fails, or the turn is
// over. It records deliveries even while the service stops. It also records events that the
// webhook does not want, so that they are not read again. It returns the new state, and whether
// every delivery arrived.
func (d *Deliverer) catchUp(ctx context.Context, hook registry.Named[storage.Webhook],
	state storage.Delivery) (after storage.Delivery, arrived bool, err error) {
	before, until := state.Delivered, d.now().Add(maxTurn)
	saving := context.WithoutCancel(ctx)
	for e, err := range d.History(ctx, history.HistoryQuery{After: state.Delivered}) {
		if err != nil {
			return state, false, err
		}
		if d.now().After(until) || ctx.Err() != nil {
			break
		}
		if !hook.Document.Wants(e) {
			state.Delivered = e.Seq
			continue
		}
		m, err := newMessage(hook.Name, d.URL, e)
		if err == nil {
			err = d.send(ctx, hook, m)
		}
		if err != nil {
			if ctx.Err() != nil { // the service stops
				break
			}
			state = d.failed(m.id, state, err)
			return state, false, d.save(saving, hook.Name, state)
		}
		state, before = storage.Delivery{Delivered: e.Seq, Damage: state.Damage}, e.Seq
		if err := d.save(saving, hook.Name, state); err != nil {
			return state, false, err
		}
	}
	if state.Delivered == before {
		return state, true, nil
	}
	return state, true, d.save(saving, hook.Name, state)
}

// save stores the delivery state of a webhook, unless the webhook was deleted meanwhile.
func (d *Deliverer) save(ctx context.Context, id string, state storage.Delivery) error {
	if _, err := d.Webhooks.Get(ctx, id); err != nil {
		if registry.HasCode(err, registry.CodeNotFound) {
			return nil
		}
		return err
	}
	return d.Deliveries.Put(ctx, id, state)
}

// failed returns the state after a failed attempt.
func (d *Deliverer) failed(message string, state storage.Delivery, err error) storage.Delivery {
	now := d.now()
	state.Attempts++
	state.LastError = registry.PlainText(err.Error()) // it may quote the receiver
	wait := min(firstWait<<min(state.Attempts-1, 20), longestWait)
	wait = wait/2 + rand.N(wait/2) //nolint:gosec // jitter needs no secret randomness
	var asked retryAfter
	if errors.As(err, &asked) {
		wait = min(max(wait, asked.wait), longestWait)
	}
	state.NextAttempt = now.Add(wait)
	if state.Attempts >= maxAttempts || errors.Is(err, errGone) {
		state.Suspended, state.NextAttempt = now, time.Time{}
	}
	d.Logger.Warn("webhook delivery failed", "message", message, "attempts", state.Attempts, "suspended", !state.Suspended.IsZero(), "error", err)
	return state
}

// retryAfter is a failure with the time after which the receiver wants the next attempt.
type retryAfter struct {
	error
	wait time.Duration
}

func (r retryAfter) Unwrap() error { return r.error }

// send makes one attempt.
func (d *Deliverer) send(ctx context.Context, hook registry.Named[storage.Webhook], m message) error {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, hook.Document.URL, bytes.NewReader(m.body))
	if err != nil {
		return err
	}
	timestamp := strconv.FormatInt(d.now().Unix(), 10)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "mlpromote-webhook")
	request.Header.Set("webhook-id", m.id)
	request.Header.Set("webhook-timestamp", timestamp)
	request.Header.Set("webhook-signature", m.signature(hook.Document.Secret, timestamp))
	response, err := d.client.Do(request)
	if err != nil {
		var withURL *url.Error // its URL may contain a secret
		if errors.As(err, &withURL) {
			err = withURL.Err
		}
		return err
	}
	defer response.Body.Close()
	return evaluate(response)
}

// evaluate returns nil if the response means that the event arrived.
func evaluate(response *http.Response) error {
	told, err := io.ReadAll(io.LimitReader(response.Body, maxTold))
	switch {
	case response.StatusCode/100 == 2:
		return nil
	case response.StatusCode == http.StatusGone:
		return errGone
	case err != nil:
		return err
	}
	err = fmt.Errorf("it answered %d: %q", response.StatusCode, told)
	if seconds, failed := strconv.ParseUint(response.Header.Get("Retry-After"), 10, 16); failed == nil {
		return retryAfter{err, time.Duration(seconds) * time.Second}
	}
	return err
}
