package web

import (
	"context"
	"net/http"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/storage"
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

// quarantine is one that stands.
type quarantine struct{ Subject, Reason, Signer string }

// engineRow is an engine in the list of a release.
type engineRow struct {
	Label     string
	URL       string
	Digest    digest
	Toolchain string
	Precision string
	Native    bool
	Verdict   state
	Closest   margin // the check that is closest to its limit
	Accuracy  string
	Drop      string
	P50, P99  string
	P50Bounds string // empty if the report has none
	P99Bounds string
	Size      string

	p50, p99 int64 // ns; 0: not measured
	bytes    int64 // 0: unknown
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

// fact is a name with a digest or a text.
type fact struct {
	Name   string
	Text   string
	Digest digest
}

// evidenceRow is a claim: who says what about which subject.
type evidenceRow struct {
	Subject string
	What    string
	Signer  string
	KeyID   digest // of the signer
	Covers  string // what it says, and about what
	Role    string // in which it counts
	Key     state
	Time    moment
	Source  string // what shows the time
	Reason  string
	Bundle  digest
	URL     string // of its bytes
}

// read is a release with its evidence.
type read struct {
	artifact.Release
	environment string
	claims      []evidence.Claim
	counted     []evidence.Claim
	ignored     evidence.IgnoredEvidence
}

// readRelease reads a release and its evidence.
func readRelease(ctx context.Context, reg api.Interface, environment, model, ref string) (read, error) {
	release, err := reg.Release(ctx, environment, model, ref)
	if err != nil {
		return read{}, err
	}
	claims, dropped, err := reg.Claims(ctx, environment, release)
	if err != nil {
		return read{}, err
	}
	counted, misplaced := evidence.Accept(release, claims)
	dropped.Ignore(misplaced...)
	return read{release, environment, claims, counted, dropped}, nil
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

// findPlace finds a release: in the environment that is asked for, or in the last one of the chain that has it and
// that the reader may see.
func findPlace(ctx context.Context, reg api.Interface, asked string, find func(environment string) error) (policy.Environments, string, error) {
	environments, err := reg.Environments(ctx)
	if err != nil {
		return environments, "", err
	}
	if asked != "" {
		if _, err := environments.Find(asked); err != nil {
			return environments, "", err
		}
		return environments, asked, find(asked)
	}
	var first error
	for i := len(environments.List) - 1; i >= 0; i-- {
		name := environments.List[i].Name
		err := find(name)
		if err == nil {
			return environments, name, nil
		}
		if !registry.HasCode(err, registry.CodeNotFound) && !registry.HasCode(err, registry.CodeForbidden) {
			return environments, "", err
		}
		first = err
	}
	return environments, "", first
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

// evidenceRows describes the claims that count, in the order of their subjects.
func evidenceRows(now storage.Clock, in read) []evidenceRow {
	var all []evidenceRow
	for _, subject := range in.Subjects() {
		for _, c := range in.counted {
			if c.Subject != subject.Digest {
				continue
			}
			at, source := c.Time()
			e := evidenceRow{
				Subject: subject.Name, What: evidenceName(c.Statement.PredicateType), Signer: signer(c), KeyID: keyID(c), Covers: covers(c), Key: keyState(c.Key), Time: momentOf(now, at),
				Source: string(source), Reason: registry.PlainText(c.Reason()), Bundle: digestOf(c.Bundle),
				URL: modelAPI(in.Model, "bundle", "environment", in.environment, "digest", string(c.Bundle)),
			}
			if role, ok := c.Issuer(); ok {
				e.Role = string(role)
			}
			all = append(all, e)
		}
	}
	return all
}

// signer names who signed: the person for whom a service signed, or the key by the path that names it.
func signer(c evidence.Claim) string {
	if p := c.Attested(); p != nil {
		return registry.PlainText(p.String())
	}
	if len(c.Keys) > 0 {
		return registry.PlainText(c.Keys[0])
	}
	return registry.PlainText(c.Signer[:min(len(c.Signer), shortDigest)])
}

func keyState(k evidence.KeyState) state {
	switch k {
	case evidence.KeyTrusted:
		return stateOf(classGood, string(k))
	case evidence.KeyRetired:
		return stateOf(classWait, string(k))
	}
	return stateOf(classBad, string(evidence.KeyRevoked))
}

// keyID is the identifier of the key that signed.
func keyID(c evidence.Claim) digest {
	id := registry.PlainText(c.Signer)
	return digest{id[:min(len(id), shortDigest)], id}
}

// covers says in words what a claim states.
func covers(c evidence.Claim) string {
	switch c.Statement.PredicateType {
	case evidence.PredicateSign:
		return "the manifest, which names every file by its digest"
	case evidence.PredicateProvenance:
		return "its ingredients, and how it was made"
	case evidence.PredicateTestResult:
		return "the verdict, for other tools"
	case evidence.PredicateParity, evidence.PredicatePerformance:
		what := "that it computes the same as the reference"
		if c.Statement.PredicateType == evidence.PredicatePerformance {
			what = "how long a run takes"
		}
		var head evidence.ReportHead
		if registry.DecodeSigned(c.Statement.Predicate, &head) != nil {
			return what
		}
		return registry.PlainText(what + ": " + string(head.Verdict) + ", with " + head.Runtime.Name + " " + head.Runtime.Version + " on " + head.Node.Kind())
	case evidence.PredicateApproval:
		return "that it may be promoted"
	case evidence.PredicateBreakGlass:
		return "that requirements may be skipped in an emergency"
	case evidence.PredicateQuarantine:
		return "that it must not be used"
	case evidence.PredicateVSA:
		return "the release and every engine of it: that they met the policy"
	}
	return ""
}
