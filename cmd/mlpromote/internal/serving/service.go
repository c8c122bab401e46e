package serving

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync/atomic"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/clock"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/pages"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/access/authn"
	"mlpromote.dev/mlpromote/registry/access/oidc"
	"mlpromote.dev/mlpromote/registry/checkpoint"
	"mlpromote.dev/mlpromote/registry/config"
	"mlpromote.dev/mlpromote/registry/gate"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/scrub"
	"mlpromote.dev/mlpromote/registry/server"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/registry/telemetry"
	"mlpromote.dev/mlpromote/signer"
)

// Service is a service: what it works with for its whole life, and what is built of its
// configuration, which another takes the place of when the files change.
type Service struct {
	*Process
	at     wiring.Location
	Here   *wiring.Local
	keys   *signer.Keyring
	authn  *authn.Authenticator
	keeper *config.Keeper[*generation]
	points *checkpoint.Keeper // of the history
	stop   <-chan struct{}    // closed when the service stops

	gate       *gate.Gate
	limiter    *server.Limiter // shared by all generations, by the API and by pages
	scrubber   *scrub.Background
	operations *pages.Operations
	damaged    atomic.Int64 // pieces of content that are known to be
}

// generation is what a service built of one configuration. A request is answered by one
// generation from its beginning to its end.
type generation struct {
	*wiring.Instance
	own           config.Snapshot
	issuers       *oidc.Identifier
	api, endpoint http.Handler
	pages         *pages.Site
	findings      []config.Finding
}

// keyGCPercent collects the heap while a key is opened, so that what requests leave behind does
// not grow by as much as that takes.
const keyGCPercent = 10

// files is where the configuration is. It tells the operator now, rather than whoever
// promotes first, that there is no key to do it with, or one that its password does not
// open. To open one takes 64 MiB, which the collector would go on to take for what a
// service needs.
func (sv *Service) files(ctx context.Context) config.Files {
	defer debug.FreeOSMemory()
	defer debug.SetGCPercent(debug.SetGCPercent(keyGCPercent))
	files, err := sv.at.SignedFiles(ctx, sv.keys)
	if err != nil {
		sv.logger.WarnContext(ctx, "nothing can be promoted here", "error", err, "hint", strings.Join(registry.Hints(err), "; "))
	}
	return files
}

// lastAgreement compares with what was agreed on at the last look, for what is asked all the
// time.
func (sv *Service) lastAgreement(own config.Snapshot) config.Agreement {
	return config.Agreement{Own: own.Configuration, Service: true, Agreed: func(ctx context.Context) (history.Configuration, error) {
		return sv.keeper.LastAgreed(ctx)
	}}
}

// issuersOf are those of a configuration. As long as they stay the same, so do the keys that
// are known of them.
func (sv *Service) issuersOf(own config.Snapshot) *oidc.Identifier {
	if sv.keeper != nil {
		if g := sv.keeper.InForce(); g.own.Configuration.Access == own.Configuration.Access {
			return g.issuers
		}
	}
	return oidc.New(own.Access, clock.Now, sv.logger)
}

// identify gives who is let in by the token of an issuer. Nobody is where access.yaml is not
// the one that was agreed on.
func (sv *Service) identify(ctx context.Context, token string) (storage.Principal, error) {
	g := sv.keeper.InForce()
	if err := sv.lastAgreement(g.own).Check(ctx, "access"); err != nil {
		return storage.Principal{}, err
	}
	return g.issuers.Identify(ctx, token)
}

// byClaims returns the principal of the claims of a session. It refuses everybody while access.yaml differs from the
// one that was agreed on.
func (sv *Service) byClaims(ctx context.Context, issuer string, claims []byte) (storage.Principal, error) {
	g := sv.keeper.InForce()
	if err := sv.lastAgreement(g.own).Check(ctx, "access"); err != nil {
		return storage.Principal{}, err
	}
	return g.issuers.ByClaims(issuer, claims)
}

// accessRules names the rules by which issuers' tokens let somebody in.
func (sv *Service) accessRules() string { return string(sv.keeper.InForce().own.Configuration.Access) }

// accessConfigured reports whether access.yaml is there, even with mistakes in it.
func (sv *Service) accessConfigured() bool {
	_, err := os.Lstat(filepath.Join(sv.at.PolicyFolder(), config.AccessFile))
	return !os.IsNotExist(err)
}

// Status says how the configuration of this replica stands to the one that was agreed on.
func (sv *Service) Status() history.ConfigurationStatus { return sv.keeper.Status() }

// Adopt makes what the files of this replica say the agreed configuration.
func (sv *Service) Adopt(ctx context.Context, want history.Configuration) (history.ConfigurationStatus, error) {
	return sv.keeper.Adopt(ctx, want)
}

// current answers every request by the generation that is in force when it comes.
func (sv *Service) current(of func(*generation) http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { of(sv.keeper.InForce()).ServeHTTP(w, r) })
}

// tell says what a look at the configuration found.
func (sv *Service) tell(ctx context.Context, r config.Report) {
	sv.telemetry.Configured(r.State, r.Taken)
	if r.Taken {
		for _, change := range r.Changes {
			sv.logger.InfoContext(ctx, "the configuration in force changed", "change", change)
		}
		sv.logger.InfoContext(ctx, "another configuration is in force", "configuration", r.InForce.String(), "changes", len(r.Changes))
		sv.tellFindings(ctx)
	}
	switch r.State {
	case history.ConfigurationUnreadable:
		sv.logger.ErrorContext(ctx, "the files of the configuration cannot be used: the previous ones stay in force", "error", r.Problem)
	case history.ConfigurationPending:
		for _, change := range r.Changes {
			sv.logger.InfoContext(ctx, "this waits for being adopted", "change", change)
		}
		sv.logger.WarnContext(ctx, "the files of the configuration changed: the agreed ones stay in force",
			"hint", "mlpromote configuration adopt, when all replicas have the same files")
	case history.ConfigurationDiffers:
		sv.logger.ErrorContext(ctx, "the configuration differs from the one agreed on: nothing is changed or resolved here",
			"parts", strings.Join(r.InForce.Differs(r.Agreed), ", "),
			"agreed", r.Agreed.String(), "inForce", r.InForce.String(),
			"hint", "give this replica the files that the others have, or mlpromote configuration adopt")
	}
}

// tellReplica says whether this replica may write.
func (sv *Service) tellReplica(ctx context.Context, err error) {
	if err != nil {
		sv.logger.ErrorContext(ctx, "nothing is written here", "error", err, "hint", strings.Join(registry.Hints(err), "; "))
		return
	}
	sv.logger.InfoContext(ctx, "this replica has joined the others of its catalog", "replica", sv.holder)
}

// tellFindings says what in the configuration in force cannot work.
func (sv *Service) tellFindings(ctx context.Context) {
	for _, f := range sv.keeper.InForce().findings {
		if f.Problem {
			sv.logger.WarnContext(ctx, f.Text, "hint", f.Fix)
		} else {
			sv.logger.InfoContext(ctx, f.Text)
		}
	}
}

// Process is a service while it runs.
type Process struct {
	config    Config
	holder    string // what leases call this process
	logger    *slog.Logger
	telemetry *telemetry.Telemetry
	flush     func(context.Context) error // sends the traces that are left
	stopping  atomic.Bool                 // /readyz says no
}
