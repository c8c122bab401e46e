package main

import (
	"context"
	"io/fs"
	"log/slog"
	"os"
	"sync"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/access/oidc"
)

// issuers are those that access.yaml trusts, as it is now: the file is looked at for every
// token of theirs, which costs less than checking its signature.
type issuers struct {
	path   string
	logger *slog.Logger

	mu      sync.Mutex
	seen    fs.FileInfo // of the file that was read last, whether it could be used or not; nil: there was none
	trusted *oidc.Identifier
}

// newIssuers reads the file, and gives how many there are. Errors: those of [oidc.Load],
// but for a file that is not there, which trusts nobody.
func newIssuers(path string, logger *slog.Logger) (*issuers, int, error) {
	i := &issuers{path: path, logger: logger}
	i.seen, _ = os.Stat(path) // before it is read: a later change is seen later
	n, err := i.read()
	return i, n, err
}

// read reads the file, whether it changed or not. On an error all stays as it was.
func (i *issuers) read() (n int, err error) {
	config, err := oidc.Load(i.path)
	if err != nil && !registry.HasCode(err, registry.CodeNotFound) {
		return 0, err
	}
	i.trusted = oidc.New(config, now, i.logger)
	return len(config.Issuers), nil
}

// Identify is that of [oidc.Identifier].
func (i *issuers) Identify(ctx context.Context, token string) (registry.Principal, error) {
	return i.current(ctx, false).Identify(ctx, token)
}

// Reload reads the file, and the certificates that it names, also where it did not change.
func (i *issuers) Reload(ctx context.Context) { i.current(ctx, true) }

// current is what the file says now. As long as that cannot be understood, it is what it
// said before. A file that was removed trusts nobody.
func (i *issuers) current(ctx context.Context, force bool) *oidc.Identifier {
	i.mu.Lock()
	defer i.mu.Unlock()
	found, err := os.Stat(i.path)
	if err != nil {
		found = nil
	}
	if !force && (found == nil && i.seen == nil || found != nil && unchanged(i.seen, found)) {
		return i.trusted
	}
	i.seen = found
	if n, err := i.read(); err != nil {
		i.logger.ErrorContext(ctx, "the issuers that are trusted stay as they were", "error", err)
	} else {
		i.logger.InfoContext(ctx, "read again who is trusted", "file", i.path, "issuers", n)
	}
	return i.trusted
}
