// Package serving runs a service over a data directory: it reads settings, authenticates callers, answers
// OCI and REST requests, and reloads its configuration, collects, scrubs and tells webhooks beside that.
package serving

import (
	"context"
	"errors"
	"log/slog"
	"strings"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/host"
)

// Run runs a service until ctx ends. It tells listening the URL once it can be asked.
func Run(ctx context.Context, at wiring.Location, config Config, logger *slog.Logger, listening func(url string) error) (err error) {
	defer reserveHeap()()
	s, err := New(ctx, at, config, logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.flush(ctx)) }()
	if err := at.Create(); err != nil {
		return err
	}
	announce, unlock, err := at.LockServed(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	sv, err := Open(ctx, at, s)
	if sv != nil {
		defer func() { err = errors.Join(err, sv.Here.DB.Close()) }()
	}
	if err != nil {
		return err
	}
	if sv.Here.Replica != nil {
		sv.Here.Replica.Join(ctx)
	}
	if err := sv.Here.Blobs.Verdict.Err(); err != nil {
		s.logger.WarnContext(ctx, "content can be read here and not changed", "error", err, "hint", strings.Join(registry.Hints(err), "; "))
	} else if sv.Here.Replica.Check() != nil {
		s.logger.DebugContext(ctx, "leftovers of uploads stay until this replica may write")
	} else if n, err := sv.Here.Blobs.Uploads.Sweep(ctx); err != nil || n > 0 {
		s.logger.InfoContext(ctx, "removed leftovers of uploads that were broken off", "number", n, "error", err)
	}
	srv, err := sv.Server(ctx)
	if err != nil {
		return err
	}
	listener, err := host.Listen(ctx, config.Listen)
	if err != nil {
		return err
	}
	url := config.address(listener)
	if err := announce(url); err != nil {
		return errors.Join(err, listener.Close())
	}
	stop, err := sv.background(ctx)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	defer stop()
	if err := listening(url); err != nil {
		return errors.Join(err, listener.Close())
	}
	s.logger.InfoContext(ctx, "serving", "data", at.Data, "url", url, "hint", "MLPROMOTE_REGISTRY="+url+" points the verbs here")
	shutdown := host.Shutdown{Begin: func() { s.stopping.Store(true) }, Delay: config.ShutdownDelay, Grace: config.ShutdownGrace}
	return shutdown.Serve(ctx, srv, listener)
}
