package approver_test

import (
	"context"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/approver"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/storage"
)

// reporter has reports that count, and those of silent nodes; err is what a service says of the latter.
type reporter struct {
	storage.NodeReporter
	counts, silent []storage.NodeReport
	err            error
}

func (r reporter) NodeReports(context.Context, string, string, string, int) (storage.Page[storage.NodeReport], error) {
	return storage.Page[storage.NodeReport]{Items: r.counts}, nil
}

func (r reporter) SilentNodes(context.Context, string, string, string, int) (storage.Page[storage.NodeReport], error) {
	return storage.Page[storage.NodeReport]{Items: r.silent}, r.err
}

// A quarantine lists the nodes that have the release, also those that fell silent, and no other.
func TestQuarantineListsSilentNodes(t *testing.T) {
	t.Parallel()
	const bad, good = registry.Digest("sha256:00"), registry.Digest("sha256:11")
	from := reporter{
		counts: []storage.NodeReport{{Node: "a", Release: bad, Engine: good}, {Node: "b", Release: good, Engine: good}},
		silent: []storage.NodeReport{{Node: "c", Release: good, Engine: bad, Silent: true}, {Node: "d", Release: good, Silent: true}},
	}
	for name, c := range map[string]struct {
		err  error
		want string
		code registry.Code
	}{
		"silent nodes":                   {nil, "ac", ""},
		"a service that does not answer": {registry.Errorf(registry.CodeUnavailable, "gone"), "", registry.CodeUnavailable},
	} {
		from := from
		from.err = c.err
		attached := []approver.Attached{{Place: approver.Place{Environment: "prod", Model: "m", Subject: artifact.Subject{Digest: bad}}}}
		err := approver.Quarantiner{}.AddNodes(t.Context(), attached, from)
		got := ""
		for _, r := range attached[0].Nodes {
			got += r.Node
		}
		if got != c.want || c.code != "" && !registry.HasCode(err, c.code) || c.code == "" && err != nil {
			t.Errorf("%s: nodes %q, error %v, want %q and code %q", name, got, err, c.want, c.code)
		}
	}
}
