package export

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/cmd/internal/connect"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/restriction"
	"mlpromote.dev/mlpromote/registry/storage"
)

// shown is a registry of one model, which shows what a token may read: it has a tagged release in prod, and one
// that the history alone names.
type shown struct {
	api.Interface
	partial bool
	refuses string // environment that the token may not read
}

var tagged, untagged, elsewhere = digest.FromString("tagged"), digest.FromString("untagged"), digest.FromString("elsewhere")

func (s shown) Models(context.Context, string, string, int) (storage.Page[history.ModelHeads], error) {
	return storage.Page[history.ModelHeads]{Items: []history.ModelHeads{{Name: "vision/digits"}}, Partial: s.partial}, nil
}

func (s shown) Restrictions(_ context.Context, environment string) (restriction.SignedRestrictions, error) {
	return restriction.SignedRestrictions{Environment: environment}, nil
}

func (s shown) Releases(_ context.Context, environment, _, _ string, _ int) (storage.Page[storage.TaggedRelease], error) {
	return storage.Page[storage.TaggedRelease]{Items: []storage.TaggedRelease{{Tag: "1.0.0", Release: tagged},
		{Tag: "current", Release: tagged}}}, nil
}

func (s shown) History(_ context.Context, q history.HistoryQuery) ([]history.Event, error) {
	switch q.Environment {
	case s.refuses:
		return nil, registry.Errorf(registry.CodeForbidden, "no grant allows it")
	case "staging":
		return []history.Event{{Release: tagged}, {Release: untagged}, {Release: elsewhere}}, nil
	case "prod":
		return []history.Event{{Release: tagged}, {Kind: history.EventConfigure}}, nil
	}
	return []history.Event{{Release: digest.FromString("of later environments")}}, nil
}

func (s shown) Release(_ context.Context, environment, model, name string) (artifact.Release, error) {
	if environment != "prod" || registry.Digest(name) == elsewhere {
		return artifact.Release{}, registry.Errorf(registry.CodeNotFound, "%s is not in %s", name, environment)
	}
	return artifact.Release{Model: model, Digest: registry.Digest(name)}, nil
}

// Claims are a summary of each, and nothing that makes the release usable.
func (s shown) Claims(_ context.Context, _ string, r artifact.Release) ([]evidence.Claim, evidence.IgnoredEvidence, error) {
	return []evidence.Claim{{Statement: evidence.Statement{PredicateType: evidence.PredicateVSA}}}, evidence.IgnoredEvidence{}, nil
}

// What has a summary and no tag is denied. A token that does not show all that the policy needs is refused, and
// with --partial the policy says so.
func TestDeniedCandidates(t *testing.T) {
	t.Parallel()
	es := policy.Environments{Registry: "local", List: []policy.Environment{{Name: "staging"},
		{Name: "prod", From: "staging"}, {Name: "edge", From: "prod"}}}
	for name, c := range map[string]struct {
		of      shown
		partial bool
		code    registry.Code
		denied  []registry.Digest
	}{
		"all is shown":                   {shown{}, false, "", []registry.Digest{tagged, untagged}},
		"models are left out":            {shown{partial: true}, false, registry.CodeForbidden, nil},
		"staging is not shown":           {shown{refuses: "staging"}, false, registry.CodeForbidden, nil},
		"models are left out, partial":   {shown{partial: true}, true, "", []registry.Digest{tagged, untagged}},
		"staging is not shown, partial":  {shown{refuses: "staging"}, true, "", []registry.Digest{tagged}},
		"a later environment is its own": {shown{refuses: "edge"}, false, "", []registry.Digest{tagged, untagged}},
		"partial, although all is shown": {shown{}, true, "", []registry.Digest{tagged, untagged}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := fullAdmission()
			a.Denied = nil
			err := a.deny(t.Context(), &connect.Registry{Interface: c.of, Envs: es}, c.partial)
			if registry.CodeOf(err) != c.code && (err != nil || c.code != "") {
				t.Fatalf("error %v, want %q", err, c.code)
			}
			var got []registry.Digest
			for _, d := range a.Denied {
				got = append(got, d.Digest)
			}
			slices.Sort(c.denied)
			if !slices.Equal(got, c.denied) {
				t.Errorf("denied %v, want %v", got, c.denied)
			}
			text, err := a.YAML(ForKyverno, at)
			if says := strings.Contains(text, `mlpromote.dev/partial: "true"`); err != nil || says != (c.of != shown{} && c.of.refuses != "edge") {
				t.Errorf("the policy calls itself partial: %t, error %v", says, err)
			}
		})
	}
}
