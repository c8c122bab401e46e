package storage

import (
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/history"
)

// Adopt returns the change that adopts a configuration in place of the agreed one. The Subject of its
// event is the digest of the new configuration, and Previous that of the old one.
func Adopt(before, to history.Configuration, reason string, now time.Time) (Change, error) {
	after := to.Over(before)
	subject, err := after.Digest()
	if err != nil {
		return Change{}, err
	}
	previous, err := before.Digest()
	if err != nil {
		return Change{}, err
	}
	return Change{
		Event:     history.Event{Time: now, Kind: history.EventConfigure, Subject: subject, Previous: previous, Reason: registry.PlainText(reason)},
		Configure: &history.ConfigurationMove{Expect: before, To: to},
	}, nil
}
