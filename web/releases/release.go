package releases

import (
	"context"
	"net/http"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/web/page"
)

// Summary is a release in an environment, with its engines.
type Summary struct {
	Version     string
	URL         string
	Digest      page.Digest
	Environment string
	Engines     EngineTable
	Quarantined []quarantine
	Skipped     string // what its promotion skipped
	LeftOut     []string
}

// releaseView is the page of a release.
type releaseView struct {
	Summary
	Model    string
	ModelURL string
	Parts    []page.Fact
	Nodes    []Coverage // which engine node types get
	NodesCut bool       // there are more node types than are shown
	Evidence []evidenceRow
	Ignored  []page.Ignored
	Count    int // of ignored evidence
}

// ReadSummary reads a release and describes it with its engines. It returns errors of the registry.
func ReadSummary(
	ctx context.Context, reg api.Interface, environments policy.Environments, environment, model string, d registry.Digest,
) (*Summary, error) {
	in, err := ReadRelease(ctx, reg, environment, model, string(d))
	if err != nil {
		return nil, err
	}
	view := summarize(in, environments)
	return &view, nil
}

func summarize(in Read, environments policy.Environments) Summary {
	view := Summary{
		Version: in.Tag(), URL: page.ReleaseURL(in.Model, in.Digest, in.environment), Digest: page.DigestOf(in.Digest), Environment: in.environment,
	}
	for _, e := range in.Engines {
		view.Engines.Rows = append(view.Engines.Rows, row(in, e))
	}
	for _, subject := range in.Subjects() {
		for _, c := range evidence.Quarantines(in.Release, in.Claims, subject.Digest) {
			view.Quarantined = append(view.Quarantined, quarantine{subject.Name, registry.PlainText(c.Reason()), signer(c)})
		}
	}
	if _, summary, ok := policy.FindVSA(in.Claims, in.Release, environments.ResourceURI(in.environment, in.Model)); ok && summary.Promotion.Skipped != nil {
		view.Skipped = registry.PlainText(summary.Promotion.Skipped.String())
	}
	for _, left := range evidence.LeftOutOf(in.Release, in.Claims) {
		view.LeftOut = append(view.LeftOut, registry.PlainText(left.Label))
	}
	return view
}

// ReleasePage is the page of a release. It returns errors of the registry.
func ReleasePage(config *page.Config, r *http.Request, model string, d registry.Digest) (page.Answer, error) {
	var in Read
	environments, environment, err := FindPlace(r.Context(), config.Registry, r.URL.Query().Get("environment"), func(name string) (err error) {
		in, err = ReadRelease(r.Context(), config.Registry, name, model, string(d))
		return err
	})
	if err != nil {
		return page.Answer{}, err
	}
	view := releaseView{
		Summary: summarize(in, environments), Model: model, ModelURL: page.ModelURL(model), Evidence: evidenceRows(config.Now, in), Count: in.ignored.IgnoredCount,
		Parts: []page.Fact{
			{Name: "Release", Digest: page.DigestOf(in.Digest)}, {Name: "Sources", Digest: page.DigestOf(in.Sources)}, {Name: "Plan", Digest: page.DigestOf(in.Plan)},
			{Name: "Limits", Digest: page.DigestOf(in.Limits)}, {Name: "Interface", Digest: page.DigestOf(in.Interface)},
		},
	}
	view.Engines = EnginesBy(r.URL.Query(), view.Engines.Rows)
	if view.Nodes, view.NodesCut, err = ReadCoverage(r.Context(), config, model, At{environment, d}); err != nil {
		return page.Answer{}, err
	}
	for _, i := range in.ignored.Ignored {
		view.Ignored = append(view.Ignored, page.Ignored{Bundle: page.DigestOf(i.Bundle), Reason: i.Reason})
	}
	return page.Answer{
		Template: "release", Title: model + " " + in.Tag(), Nav: "Models", Body: view,
		API: page.ModelAPI(model, "release", "environment", environment, "ref", string(d)),
	}, nil
}
