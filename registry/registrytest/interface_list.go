package registrytest

import (
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/history"
)

func testModels(t *testing.T, r Registry) {
	page, err := r.Models(t.Context(), "", "", 0)
	must(t, err)
	wantEqual(t, len(page.Items)+len(page.Next), 0)
	_, err = r.Models(t.Context(), "moon", "", 0)
	refused(t, err, registry.CodeNotFound, "staging, prod")
	r.Promoted(t, Build{})
	for _, model := range []string{"a", "vision/letters"} {
		r.Build(t, Build{Model: model})
	}
	walk := func(environment string, limit int) map[string]int {
		found, last := make(map[string]int), ""
		for after := ""; ; {
			page, err := r.Models(t.Context(), environment, after, limit)
			must(t, err)
			if len(page.Items) > limit {
				t.Fatalf("a page of %d has %d models", limit, len(page.Items))
			}
			for _, m := range page.Items {
				if m.Name <= last || len(m.Heads) == 0 {
					t.Errorf("after %s: %+v", last, m)
				}
				for _, h := range m.Heads {
					if h.Model != m.Name || h.Release.Validate() != nil || environment != "" && h.Environment != environment {
						t.Errorf("%s has the head %+v", m.Name, h)
					}
				}
				last, found[m.Name] = m.Name, len(m.Heads)
			}
			if after = page.Next; after == "" {
				return found
			}
		}
	}
	for _, limit := range []int{1, 2, 3, 100} {
		wantEqual(t, walk("", limit), map[string]int{"a": 1, Model: 2, "vision/letters": 1})
		wantEqual(t, walk("prod", limit), map[string]int{Model: 1})
	}
}

func testReleases(t *testing.T, r Registry) {
	first := r.Promoted(t, Build{})
	second := r.Build(t, Build{Version: "1.1.0-rc.1", Salt: "b"})
	walk := func(environment string, limit int) map[string]registry.Digest {
		found := make(map[string]registry.Digest)
		for after := ""; ; {
			page, err := r.Releases(t.Context(), environment, Model, after, limit)
			must(t, err)
			if len(page.Items) > limit {
				t.Fatalf("a page of %d has %d releases", limit, len(page.Items))
			}
			for _, item := range page.Items {
				found[item.Tag] = item.Release
			}
			if after = page.Next; after == "" {
				return found
			}
		}
	}
	for _, limit := range []int{1, 2, 100} {
		wantEqual(t, walk("staging", limit), map[string]registry.Digest{"1.0.0": first.Digest, "1.1.0-rc.1": second.Digest})
		wantEqual(t, walk("prod", limit), map[string]registry.Digest{"1.0.0": first.Digest})
	}
	page, err := r.Releases(t.Context(), "prod", "vision/nothing", "", 0)
	must(t, err)
	wantEqual(t, len(page.Items)+len(page.Next), 0)
	_, err = r.Releases(t.Context(), "moon", Model, "", 0)
	refused(t, err, registry.CodeNotFound)
}

func testSingles(t *testing.T, r Registry) {
	release := r.Promoted(t, Build{})
	for _, e := range release.Engines {
		got, err := r.Engine(t.Context(), "prod", Model, e.Digest)
		must(t, err)
		wantEqual(t, []any{got.Digest, got.Label(), got.Bytes, got.Limits}, []any{e.Digest, e.Label(), e.Bytes, e.Limits})
	}
	claims, _, err := r.Claims(t.Context(), "staging", release)
	must(t, err)
	for _, c := range claims[:3] {
		got, err := r.Interface.Bundle(t.Context(), "staging", Model, c.Bundle)
		must(t, err)
		wantEqual(t, []any{got.Digest, got.PredicateType}, []any{c.Bundle, c.Statement.PredicateType})
		claim, err := r.Keys.Verify(t.Context(), got.Data, "oci://local/staging/"+Model)
		must(t, err)
		wantEqual(t, claim.Signer, c.Signer)
	}
	for _, absent := range []registry.Digest{d("nowhere"), release.Digest, release.Limits} {
		_, err := r.Engine(t.Context(), "prod", Model, absent)
		refused(t, err, registry.CodeNotFound)
		_, err = r.Interface.Bundle(t.Context(), "prod", Model, absent)
		refused(t, err, registry.CodeNotFound)
	}
	_, err = r.Interface.Bundle(t.Context(), "prod", Model, release.Engines[0].Digest)
	refused(t, err, registry.CodeNotFound)
	_, err = r.Engine(t.Context(), "moon", Model, release.Engines[0].Digest)
	refused(t, err, registry.CodeNotFound)
}

func testHistoryPages(t *testing.T, r Registry) {
	r.Promoted(t, Build{})
	all, err := r.History(t.Context(), history.HistoryQuery{})
	must(t, err)
	last := int64(len(all))
	for _, q := range []history.HistoryQuery{
		{Limit: 3}, {After: 2, Limit: 3}, {After: 2, Before: 5}, {Before: 4, Limit: 2, Descending: true},
		{Limit: 1, Descending: true}, {After: last}, {Kind: history.EventPromote, Limit: 2},
	} {
		got, err := r.History(t.Context(), q)
		must(t, err)
		var want []int64
		for i := range all {
			e := all[i]
			if q.Descending {
				e = all[len(all)-1-i]
			}
			if e.Seq > q.After && (q.Before == 0 || e.Seq < q.Before) && (q.Kind == "" || e.Kind == q.Kind) && (q.Limit == 0 || len(want) < q.Limit) {
				want = append(want, e.Seq)
			}
		}
		var seqs []int64
		for _, e := range got {
			seqs = append(seqs, e.Seq)
		}
		wantEqual(t, seqs, want)
	}
}
