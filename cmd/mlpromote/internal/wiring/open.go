package wiring

import (
	"context"
	"errors"

	"mlpromote.dev/mlpromote/cmd/internal/suggest"
)

// Open opens the registry: that of a service, or the data directory.
func (l Location) Open(ctx context.Context) (*Instance, error) {
	if l.Registry != "" {
		return l.openRemote(ctx)
	}
	return l.OpenLocal(ctx)
}

// With opens the registry, runs verb on it and closes it. An error of verb says what was probably meant.
func (l Location) With(ctx context.Context, verb func(*Instance) error) error {
	i, err := l.Open(ctx)
	if err != nil {
		return err
	}
	return errors.Join(suggest.Around(ctx, &i.Registry, func() error { return verb(i) }), i.Close())
}
