package registry

import "time"

// Adopt returns the change that adopts a configuration in place of the agreed one. The Subject of its
// event is the digest of the new configuration, and Previous that of the old one.
func Adopt(before, to Configuration, reason string, now time.Time) (Change, error) {
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
		Event:     Event{Time: now, Kind: EventConfigure, Subject: subject, Previous: previous, Reason: PlainText(reason)},
		Configure: &ConfigurationMove{Expect: before, To: to},
	}, nil
}
