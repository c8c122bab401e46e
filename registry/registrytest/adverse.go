package registrytest

import (
	"fmt"
	"testing"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/storage"
)

// adverse is a row about a subject.
func adverse(environment, model, subject, bundle, caller string) evidence.AdverseEvidence {
	return evidence.AdverseEvidence{Environment: environment, Model: model, Subject: d(subject), Bundle: d(bundle), Caller: caller,
		PredicateType: evidence.PredicateQuarantine, Document: d("document"), Manifest: []byte("manifest of " + bundle), Data: []byte{0, 255, '"'}}
}

// consistentRow is a row whose bytes are those of its digests.
func consistentRow(environment, model string) evidence.AdverseEvidence {
	data := []byte{0, 255, '"'}
	manifest := fmt.Appendf(nil, `{"subject":{"digest":%q},"layers":[{"digest":%q}]}`, d("engine"), digest.FromBytes(data))
	return evidence.AdverseEvidence{Environment: environment, Model: model, Subject: d("engine"), Bundle: digest.FromBytes(manifest),
		PredicateType: evidence.PredicateQuarantine, Document: digest.FromBytes(data), Manifest: manifest, Data: data}
}

// keep is a change that keeps a row.
func keep(a evidence.AdverseEvidence) storage.Change {
	return storage.Change{Keeps: []evidence.AdverseEvidence{a}, Event: history.Event{
		Time: begin(), Kind: history.EventAttach, Environment: a.Environment, Model: a.Model, Subject: a.Subject}}
}

// A row comes back whole, or not at all if its bytes are not those of its digests.
func testAdverseRow(t *testing.T, catalog storage.Catalog) {
	ctx := t.Context()
	broken, whole := adverse("prod", "a", "engine", "1", ""), consistentRow("prod", "a")
	apply(t, catalog, keep(broken))
	apply(t, catalog, keep(whole))
	got, err := catalog.AdverseRow(ctx, whole.Name())
	must(t, err)
	wantEqual(t, fmt.Sprint(got), fmt.Sprint(whole))
	_, err = catalog.AdverseRow(ctx, broken.Name())
	wantCode(t, err, registry.CodeDigest)
	_, err = catalog.AdverseRow(ctx, adverse("prod", "a", "engine", "9", "").Name())
	wantCode(t, err, registry.CodeNotFound)
}

// Evidence is kept with its event or not at all, and found by its subject.
func testAdverse(t *testing.T, catalog storage.Catalog) {
	ctx := t.Context()
	list := func(model string, subject registry.Digest) []evidence.AdverseEvidence {
		t.Helper()
		rows, err := catalog.Adverse(ctx, model, subject)
		must(t, err)
		return rows
	}
	changes := func(model string) int64 {
		t.Helper()
		n, err := catalog.AdverseChanges(ctx, model)
		must(t, err)
		return n
	}
	wantEqual(t, len(list("a", d("engine"))), 0)
	wantEqual(t, changes("a"), int64(0))

	staging, prod := adverse("staging", "a", "engine", "1", "token:x"), adverse("prod", "a", "engine", "1", "token:x")
	apply(t, catalog, keep(prod))
	apply(t, catalog, keep(staging))
	apply(t, catalog, keep(adverse("prod", "a/b", "engine", "2", "")))
	apply(t, catalog, keep(adverse("prod", "a", "release", "3", "token:y")))
	refused := keep(adverse("prod", "a", "engine", "4", ""))
	refused.DecisionBasis = HeadAlone("prod", "a", d("1.0.0")) // there is no head
	_, err := catalog.Apply(ctx, refused)
	wantCode(t, err, registry.CodeConflict)

	without := func(a evidence.AdverseEvidence) evidence.AdverseEvidence {
		a.Manifest, a.Data = nil, nil
		return a
	}
	wantEqual(t, fmt.Sprint(list("a", d("engine"))), fmt.Sprint([]evidence.AdverseEvidence{without(prod), without(staging)}))
	wantEqual(t, len(list("a", "")), 3)
	wantEqual(t, len(list("a/b", d("engine"))), 1)
	wantEqual(t, len(list("b", d("engine"))), 0)
	wantEqual(t, changes("a"), int64(3))
	wantEqual(t, changes("a/b"), int64(1))

	for _, c := range []struct {
		of   evidence.AdverseEvidence
		want int
	}{{prod, 1}, {adverse("prod", "a", "engine", "", "token:y"), 0}, {adverse("prod", "a", "release", "", "token:y"), 1}} {
		n, err := catalog.CountAdverse(ctx, c.of)
		must(t, err)
		wantEqual(t, n, c.want)
	}
	must(t, catalog.KeepAdverse(ctx, prod))
	wantEqual(t, len(list("a", d("engine"))), 2)
	wantChain(t, catalog, 4)
}
