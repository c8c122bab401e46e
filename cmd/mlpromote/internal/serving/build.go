package serving

import (
	"context"
	"net/http"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/clock"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/pages"
	"mlpromote.dev/mlpromote/registry/access"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/config"
	"mlpromote.dev/mlpromote/registry/distribution"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/server"
)

// build makes what works by a configuration.
func (sv *Service) build(_ context.Context, own config.Snapshot) (*generation, error) {
	i, err := sv.at.InstanceBy(sv.Here, own, sv.keys)
	if err != nil {
		return nil, err
	}
	i.Content.Tell = func(host, credential string) { sv.at.Note("registry %s: using credential %s", host, credential) }
	asks := config.Agreement{Own: own.Configuration, Service: true}
	asks.Agreed = func(ctx context.Context) (history.Configuration, error) { return sv.keeper.Agreed(ctx) }
	last := sv.lastAgreement(own)
	previewer, _ := i.Interface.(api.Previewer)
	i.Interface = config.Registry(i.Interface,
		func(ctx context.Context) error {
			if err := sv.Here.Replica.Check(); err != nil {
				return err
			}
			return asks.Check(ctx)
		},
		func(ctx context.Context) error { return last.Check(ctx, "environments") })
	g := &generation{Instance: i, own: own, issuers: sv.issuersOf(own), findings: own.Findings(clock.Now())}
	preview := pages.Preview(previewer, func(ctx context.Context) error { return last.Check(ctx, "environments") }, i.Environments)
	if g.api, err = server.New(sv.apiConfig(i, preview)); err != nil {
		return nil, err
	}
	g.pages, err = pages.New(pages.Config{
		Registry: sv.telemetry.Registry(access.Guard(i)), Preview: preview,
		NodeTypes: i.NodeTypes, Runtimes: sv.Here.Runtimes(), Parts: i.Store, Ways: own.Access.Ways(),
		Wait: sv.limiter.Wait, Operations: sv.operations.Answer, Open: sv.Here.Blobs.Open,
		Nodes: access.GuardNodes(sv.Here.NodeReports(i, sv.config.nodeReports)), NodeLife: sv.config.nodeReports,
		URL: sv.config.URL, Logger: sv.logger,
	})
	if err != nil {
		return nil, err
	}
	blobs, uploads := sv.Here.Spared, sv.Here.Uploads
	if reserve := sv.Here.Reserve; reserve != nil {
		blobs, uploads = reserve.Blobs(blobs), reserve.Uploads(uploads)
	}
	g.endpoint, err = distribution.New(distribution.Config{
		Blobs: blobs, Refs: sv.Here.Refs, Deleter: i.Guard(),
		Uploads: uploads, MaxUploads: sv.config.maxUploads, UploadCounts: sv.Here.DB,
		MaxReferrers: sv.config.maxReferrers, ReferrerCounts: sv.Here.DB,
		Inspect: sv.gate.In(sv.Here.Refs), Redirect: sv.Here.Blobs.Redirect, Damaged: sv.suspect, Logger: sv.logger, Principal: principalName,
		Authorize: sv.authorize(own), Prefixes: access.Repositories{}.Prefixes, Challenge: func(r *http.Request, a distribution.Access) string { return Challenge(sv.authn)(r, a) },
	})
	return g, err
}

// authorize is the rule of the OCI endpoint. Where environments are not those that were
// agreed on, nothing is written: which of them are protected is part of what differs.
func (sv *Service) authorize(own config.Snapshot) func(context.Context, distribution.Access) error {
	allowed, agreement := Authorize(own.Environments), sv.lastAgreement(own)
	return func(ctx context.Context, a distribution.Access) error {
		if err := allowed(ctx, a); err != nil || a.Action == distribution.Pull || a.Action == distribution.List {
			return err
		}
		if err := sv.Here.Replica.Check(); err != nil {
			return err
		}
		return agreement.Check(ctx, "environments")
	}
}
