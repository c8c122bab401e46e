package catalog

import (
	"context"

	"mlpromote.dev/mlpromote/registry/history"
)

// PartWriter replaces one part of the agreed configuration.
type PartWriter interface {
	SetConfigurationPart(ctx context.Context, p history.ConfigurationPart) error
}

// Configuration joins parts. It ignores parts with an unknown name.
func Configuration(parts []history.ConfigurationPart) history.Configuration {
	var c history.Configuration
	for _, p := range parts {
		c.Set(p.Name, p.Digest)
	}
	return c
}

// SetConfiguration replaces the parts that are set in c.
func SetConfiguration(ctx context.Context, w PartWriter, c history.Configuration) error {
	for _, p := range c.Parts() {
		if p.Digest == "" {
			continue
		}
		if err := w.SetConfigurationPart(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// MissesParts reports whether first has a part that is not agreed yet.
func MissesParts(agreed, first history.Configuration) bool { return agreed.Over(first) != agreed }

// Agree records the parts of first that are not agreed yet, and returns what is agreed then. It
// runs in a transaction that excludes other changes of the configuration.
func Agree(
	ctx context.Context,
	tx interface {
		StateRows
		PartWriter
	},
	first history.Configuration,
) (history.Configuration, error) {
	parts, err := tx.ConfigurationParts(ctx)
	if err != nil {
		return history.Configuration{}, err
	}
	agreed := Configuration(parts).Over(first)
	return agreed, SetConfiguration(ctx, tx, agreed)
}
