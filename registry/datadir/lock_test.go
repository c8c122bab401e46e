package datadir_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/datadir"
)

// A command and a collection wait for each other, and say so. Neither waits for a service.
func TestLocksWait(t *testing.T) {
	t.Parallel()
	type lock = func(context.Context, datadir.Dir, func(string)) (func() error, error)
	shared := func(ctx context.Context, dir datadir.Dir, waiting func(string)) (func() error, error) {
		return dir.LockShared(ctx, waiting)
	}
	exclusive := func(ctx context.Context, dir datadir.Dir, waiting func(string)) (func() error, error) {
		_, unlock, err := dir.LockExclusive(ctx, waiting)
		return unlock, err
	}
	for name, c := range map[string]struct {
		first, second lock
		says          string
	}{
		"a collection waits for a command":    {shared, exclusive, "is in use by another process"},
		"a command waits for a collection":    {exclusive, shared, "is locked by a collection"},
		"a collection waits for a collection": {exclusive, exclusive, "is in use by another process"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := datadir.Dir{Path: t.TempDir()}
			unlock, err := c.first(t.Context(), dir, nil)
			must(t, err)
			var said []string
			next, err := c.second(t.Context(), dir, func(why string) {
				said = append(said, why)
				must(t, unlock())
			})
			must(t, err)
			must(t, next())
			if len(said) != 1 || !strings.Contains(said[0], c.says) {
				t.Errorf("waiting was called with %q, want once with %q", said, c.says)
			}
		})
	}
	t.Run("canceled while waiting", func(t *testing.T) {
		t.Parallel()
		dir := datadir.Dir{Path: t.TempDir()}
		unlock, err := exclusive(t.Context(), dir, nil)
		must(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		if _, err := shared(ctx, dir, func(string) { cancel() }); !errors.Is(err, context.Canceled) {
			t.Errorf("canceled while waiting: got %v, want context.Canceled", err)
		}
		must(t, unlock())
	})
	t.Run("fails at once beside a service", func(t *testing.T) {
		t.Parallel()
		dir := datadir.Dir{Path: t.TempDir()}
		announce, unlock, err := dir.LockExclusive(t.Context(), nil)
		must(t, err)
		must(t, announce("http://127.0.0.1:5080"))
		never := func(why string) { t.Errorf("it waits: %s", why) }
		for _, take := range []lock{shared, exclusive} {
			_, err := take(t.Context(), dir, never)
			wantCode(t, err, registry.CodeUnavailable)
			if !strings.Contains(err.Error(), "http://127.0.0.1:5080") {
				t.Errorf("got %v, want an error with the address of the service", err)
			}
		}
		must(t, unlock())
	})
	t.Run("without waiting", func(t *testing.T) {
		t.Parallel()
		dir := datadir.Dir{Path: t.TempDir()}
		unlock, err := shared(t.Context(), dir, nil)
		must(t, err)
		_, err = exclusive(t.Context(), dir, nil)
		wantCode(t, err, registry.CodeUnavailable)
		must(t, unlock())
	})
}
