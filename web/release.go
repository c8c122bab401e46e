package web

import (
	"context"
	"net/http"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/policy"
)

// releaseSummary is a release in an environment, with its engines.
type releaseSummary struct {
	Version     string
	URL         string
	Digest      digest
	Environment string
	Engines     engineTable
	Quarantined []quarantine
	Skipped     string // what its promotion skipped
	LeftOut     []string
}

// releaseView is the page of a release.
type releaseView struct {
	releaseSummary
	Model    string
	ModelURL string
	Parts    []fact
	Nodes    []coverage // which engine node types get
	NodesCut bool       // there are more node types than are shown
	Evidence []evidenceRow
	Ignored  []ignored
	Count    int // of ignored evidence
}

func readSummary(
	ctx context.Context, reg api.Interface, environments policy.Environments, environment, model string, d registry.Digest,
) (*releaseSummary, error) {
	in, err := readRelease(ctx, reg, environment, model, string(d))
	if err != nil {
		return nil, err
	}
	view := summarize(in, environments)
	return &view, nil
}

func summarize(in read, environments policy.Environments) releaseSummary {
	view := releaseSummary{
		Version: in.Tag(), URL: releaseURL(in.Model, in.Digest, in.environment), Digest: digestOf(in.Digest), Environment: in.environment,
	}
	for _, e := range in.Engines {
		view.Engines.Rows = append(view.Engines.Rows, row(in, e))
	}
	for _, subject := range in.Subjects() {
		for _, c := range evidence.Quarantines(in.Release, in.claims, subject.Digest) {
			view.Quarantined = append(view.Quarantined, quarantine{subject.Name, registry.PlainText(c.Reason()), signer(c)})
		}
	}
	if _, summary, ok := policy.FindVSA(in.claims, in.Release, environments.ResourceURI(in.environment, in.Model)); ok && summary.Promotion.Skipped != nil {
		view.Skipped = registry.PlainText(summary.Promotion.Skipped.String())
	}
	for _, left := range evidence.LeftOutOf(in.Release, in.claims) {
		view.LeftOut = append(view.LeftOut, registry.PlainText(left.Label))
	}
	return view
}

func releasePage(config *Config, r *http.Request, model string, d registry.Digest) (answer, error) {
	var in read
	environments, environment, err := findPlace(r.Context(), config.Registry, r.URL.Query().Get("environment"), func(name string) (err error) {
		in, err = readRelease(r.Context(), config.Registry, name, model, string(d))
		return err
	})
	if err != nil {
		return answer{}, err
	}
	view := releaseView{
		releaseSummary: summarize(in, environments), Model: model, ModelURL: modelURL(model), Evidence: evidenceRows(config.Now, in), Count: in.ignored.IgnoredCount,
		Parts: []fact{
			{Name: "Release", Digest: digestOf(in.Digest)}, {Name: "Sources", Digest: digestOf(in.Sources)}, {Name: "Plan", Digest: digestOf(in.Plan)},
			{Name: "Limits", Digest: digestOf(in.Limits)}, {Name: "Interface", Digest: digestOf(in.Interface)},
		},
	}
	view.Engines = enginesBy(r.URL.Query(), view.Engines.Rows)
	if view.Nodes, view.NodesCut, err = readCoverage(r.Context(), config, model, at{environment, d}); err != nil {
		return answer{}, err
	}
	for _, i := range in.ignored.Ignored {
		view.Ignored = append(view.Ignored, ignored{digestOf(i.Bundle), i.Reason})
	}
	return answer{
		template: "release", title: model + " " + in.Tag(), nav: "Models", body: view,
		api: modelAPI(model, "release", "environment", environment, "ref", string(d)),
	}, nil
}
