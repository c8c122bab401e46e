package serving

import (
	"log/slog"
	"net/http"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/clock"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/registry/access"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/node"
	"mlpromote.dev/mlpromote/registry/server"
	"mlpromote.dev/mlpromote/registry/webhook"
)

// apiConfig is what the REST API is made of.
func (sv *Service) apiConfig(i *wiring.Instance, preview api.Previewer) server.Config {
	db := sv.Here.DB
	return server.Config{
		Registry: sv.telemetry.Registry(access.Guard(i)), Authorize: access.AllowRoute, History: db.History,
		Preview: preview, Compare: i.Compare, URL: sv.config.URL,
		NodeTypes: i.NodeTypes, Runtimes: sv.Here.Runtimes(),
		Nodes:    access.GuardNodes(sv.Here.NodeReports(i, sv.config.nodeReports)),
		ReadNode: node.Parse, CheckNode: node.Check, ReadRuntime: node.ParseRuntimeDocument, ReadLabels: node.FromLabels,
		Webhooks: db.Webhooks(), Deliveries: db.Deliveries(), Idempotency: db, Tokens: db, Clock: db,
		Configuration: sv, Checkpoints: sv.points, Operations: sv.operations.Answer,
		CheckWebhookURL: func(url string) error { return webhook.CheckURL(url, sv.config.hooks.privateUnsafe) },
		StillAdmitted:   func(r *http.Request) error { return sv.authn.StillAdmitted(r) }, // the authenticator is made later
		Limiter:         sv.limiter, Stop: sv.stop, Now: clock.Now, Logger: sv.logger,
	}
}

// deliverer tells webhooks of events while it runs. url is that of the service, for links; empty for none.
func (h hooks) deliverer(db wiring.Database, url, holder string, logger *slog.Logger) (*webhook.Deliverer, error) {
	return webhook.New(webhook.Config{
		Webhooks: db.Webhooks(), Deliveries: db.Deliveries(), Leases: db, Clock: db, History: db.History, Damages: db.Damages(),
		URL: url, PrivateUnsafe: h.privateUnsafe, Holder: holder, Logger: logger,
	})
}
