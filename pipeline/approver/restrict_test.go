package approver_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/approver"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/storage"
)

func limits(r artifact.Release) []evidence.Restriction {
	return []evidence.Restriction{{Kind: evidence.RestrictOperator, Digest: r.Limits}}
}

// putNode registers a node type.
func (w *world) putNode(t *testing.T, name, level string) {
	t.Helper()
	if err := w.nodeTypes.Put(t.Context(), name, registrytest.Node(level)); err != nil {
		t.Fatal(err)
	}
}

// A restriction comes into force in every environment, and says which heads and engines it concerns.
func TestRestrict(t *testing.T) {
	t.Parallel()
	w := setup(t, nil)
	release := w.promoted(t, registrytest.Build{})
	w.state(t, w.Build(t, registrytest.Build{Model: "a/other", Salt: "other"}))
	w.putNode(t, "old", "v1")
	w.putNode(t, "new", "v4")
	change := approver.Change{Reason: "recalled", Add: registrytest.SourceOf(release)}
	all := must[[]approver.Restricted](t)(w.restricter().Change(t.Context(), change))
	if len(all) != 2 || all[0].Environment != "staging" || all[1].Environment != "prod" {
		t.Fatalf("restricted %+v, want staging and prod", all)
	}
	for _, r := range all {
		if r.Counter != 1 || r.List == "" || r.Signer != w.Keys.KeyID("approver") || len(r.InForce) != 1 || r.InForce[0].Reason != "recalled" {
			t.Errorf("%s: %+v, want a first list with the restriction", r.Environment, r)
		}
		if len(r.Heads) != 1 || r.Heads[0].Model != registrytest.Model || r.Heads[0].Version != "1.0.0" || r.Heads[0].Release != release.Digest {
			t.Fatalf("%s: heads %+v, want that of the release alone", r.Environment, r.Heads)
		}
		engines := r.Heads[0].Engines
		if len(engines) != 3 || len(engines[0].Reasons) != 1 || !strings.HasSuffix(engines[0].Reasons[0], "source "+string(release.Sources)+" is restricted") {
			t.Errorf("%s: engines %+v, want all three, each with the reason", r.Environment, engines)
		}
		if types := r.Heads[0].NodeTypes; len(types) != 2 || types[0].Name != "new" || types[0].Engine == "" || types[0].Instead != "" || types[1].Name != "old" {
			t.Errorf("%s: node types %+v, want both, without an engine", r.Environment, types)
		}
	}
	again := must[[]approver.Restricted](t)(w.restricter().Change(t.Context(), change))
	if again[0].Counter != 1 || again[1].List != all[1].List {
		t.Errorf("the same restriction again gives %+v, want the list that is in force", again)
	}
	listed := must[[]approver.Restricted](t)(w.restricter().List(t.Context(), "prod"))
	if len(listed) != 1 || listed[0].List != all[1].List || len(listed[0].Heads) != 1 {
		t.Errorf("listed %+v, want what is in force in prod", listed)
	}
	if both := must[[]approver.Restricted](t)(w.restricter().List(t.Context(), "")); len(both) != 2 {
		t.Errorf("listed %+v, want both environments", both)
	}
}

// A list can be signed again by another key where there is one, and only when that is asked for.
func TestSignAgain(t *testing.T) {
	t.Parallel()
	w := setup(t, nil)
	release := w.promoted(t, registrytest.Build{})
	w.Restricting(t, "prod", limits(release), nil)
	all := must[[]approver.Restricted](t)(w.restricter().Change(t.Context(), approver.Change{Reason: "another key", Again: true}))
	if all[0].Counter != 0 || all[1].Counter != 2 || len(all[1].InForce) != 1 {
		t.Errorf("signed again: %+v, want a second list in prod and none in staging", all)
	}
	if len(all[1].Heads) != 0 {
		t.Errorf("heads %+v, want none: no engine carries the library", all[1].Heads)
	}
}

// What is in force in one of the environments can be lifted, and what is in force in none was misspelled.
func TestLiftRestriction(t *testing.T) {
	t.Parallel()
	w := setup(t, nil)
	release := w.promoted(t, registrytest.Build{})
	w.Restricting(t, "prod", registrytest.SourceOf(release), nil)
	_, err := w.restricter().Change(t.Context(), approver.Change{Reason: "cleared", Lift: slices.Concat(registrytest.SourceOf(release), limits(release))})
	wantError(t, "one of two is in force nowhere", err, registry.CodeNotFound, "operator "+string(release.Limits)+" is not restricted")
	_, err = w.restricter().Change(t.Context(), approver.Change{Environment: "staging", Reason: "cleared", Lift: registrytest.SourceOf(release)})
	wantError(t, "in the other environment", err, registry.CodeNotFound, "is not restricted")
	all := must[[]approver.Restricted](t)(w.restricter().Change(t.Context(), approver.Change{
		Reason: "cleared", Lift: registrytest.SourceOf(release), Add: limits(release)}))
	if all[0].Counter != 1 || all[1].Counter != 2 || len(all[1].InForce) != 1 || all[1].InForce[0].Kind != evidence.RestrictOperator {
		t.Errorf("lifted %+v, want the library restricted in both, and the source in none", all)
	}
	must[[]approver.Restricted](t)(w.restricter().Change(t.Context(), approver.Change{Environment: "prod", Reason: "cleared", Lift: limits(release)}))
	if listed := must[[]approver.Restricted](t)(w.restricter().List(t.Context(), "prod")); len(listed[0].InForce) != 0 || listed[0].Counter != 3 {
		t.Errorf("listed %+v, want an empty third list", listed)
	}
}

// A change without content is refused, and errors of one environment do not stop the others.
func TestRestrictFails(t *testing.T) {
	t.Parallel()
	w := setup(t, nil)
	release := w.promoted(t, registrytest.Build{})
	add := registrytest.SourceOf(release)
	change := func(c approver.Change) error {
		_, err := w.restricter().Change(t.Context(), c)
		return err
	}
	wantError(t, "nothing", change(approver.Change{Reason: "recalled"}), registry.CodeInvalid, "want a source")
	wantError(t, "no reason", change(approver.Change{Add: add}), registry.CodeInvalid, "want a reason")
	wantError(t, "no environment", change(approver.Change{Environment: "moon", Reason: "x", Add: add}), registry.CodeNotFound, "moon")
	_, err := w.restricter().List(t.Context(), "moon")
	wantError(t, "a list of no environment", err, registry.CodeNotFound, "moon")
	if err := change(approver.Change{Environment: "prod", Reason: "x", Add: []evidence.Restriction{{Kind: "colour"}}}); !registry.HasCode(err, registry.CodeInvalid) {
		t.Errorf("a kind that does not exist: error %v", err)
	}
	w.failing("restrict", "staging", registry.CodeTrust)
	all, err := w.restricter().Change(t.Context(), approver.Change{Reason: "recalled", Add: add})
	wantError(t, "one environment fails", err, registry.CodeTrust, "staging: restrict fails")
	if len(all) != 1 || all[0].Environment != "prod" || all[0].Counter != 1 {
		t.Errorf("restricted %+v, want prod", all)
	}
	w.failing("restrictions", "prod", registry.CodeUnavailable)
	all, err = w.restricter().Change(t.Context(), approver.Change{Reason: "x", Lift: add})
	wantError(t, "lists cannot be read", err, registry.CodeUnavailable, "restrictions fails")
	if len(all) != 0 {
		t.Errorf("restricted %+v, want no change where it is not known what is in force", all)
	}
	_, err = w.restricter().List(t.Context(), "")
	wantError(t, "a list that cannot be read", err, registry.CodeUnavailable, "restrictions fails")
	for _, call := range []string{"heads", "claims", "nodes", "release"} {
		w.failing(call, "prod", registry.CodeUnavailable)
		_, err = w.restricter().List(t.Context(), "prod")
		wantError(t, "where "+call+" fails", err, registry.CodeUnavailable, call+" fails")
	}
	w.failing("heads", "prod", registry.CodeUnavailable)
	all, err = w.restricter().Change(t.Context(), approver.Change{Environment: "prod", Reason: "x", Add: limits(release)})
	wantError(t, "it came into force, and reading heads fails", err, registry.CodeUnavailable, "prod: heads fails")
	if len(all) != 1 || all[0].Counter != 2 {
		t.Errorf("restricted %+v, want the list that came into force", all)
	}
	w.failing("", "", "")
	r := w.restricter()
	r.Key = func(context.Context) (string, error) {
		return "", registry.Errorf(registry.CodeUnavailable, "no key of an approver")
	}
	_, err = r.Change(t.Context(), approver.Change{Reason: "cleared", Lift: add})
	wantError(t, "without the key's identifier", err, registry.CodeUnavailable, "no key of an approver")
	r.Sign = registrytest.NewKeys(nil).Sign
	r.Key = w.restricter().Key
	_, err = r.Change(t.Context(), approver.Change{Reason: "cleared", Lift: add})
	wantError(t, "without a key", err, registry.CodeUnavailable, "there is no key approver")
}

// Where another list comes first, the next one is signed after it, and after five times that is an error.
func TestRestrictAfterAnotherList(t *testing.T) {
	t.Parallel()
	w := setup(t, nil)
	for losses, want := range map[int]registry.Code{4: "", 5: registry.CodeConflict} {
		lost := 0
		w.fail = func(call, _, _ string) error {
			if call == "restrict" && lost < losses {
				lost++
				return registry.Errorf(registry.CodeConflict, "another list came first")
			}
			return nil
		}
		subject := []evidence.Restriction{{Kind: evidence.RestrictToolchain, Toolchain: "onnxruntime", Versions: fmt.Sprintf("<1.%d.0", losses)}}
		_, err := w.restricter().Change(t.Context(), approver.Change{Environment: "prod", Reason: "recalled", Add: subject})
		if registry.CodeOf(err) != want && (err != nil || want != "") {
			t.Errorf("after %d other lists: error %v, want code %q", losses, err, want)
		}
	}
}

// A list that can be read once and then not is not changed.
func TestRestrictReadsTheListAgain(t *testing.T) {
	t.Parallel()
	w := setup(t, nil)
	release := w.promoted(t, registrytest.Build{})
	reads := 0
	w.fail = func(call, _, _ string) error {
		if call == "restrictions" {
			reads++
		}
		if reads == 2 {
			return registry.Errorf(registry.CodeUnavailable, "restrictions fails")
		}
		return nil
	}
	all, err := w.restricter().Change(t.Context(), approver.Change{Environment: "prod", Reason: "x", Add: registrytest.SourceOf(release)})
	wantError(t, "the second read fails", err, registry.CodeUnavailable, "prod: restrictions fails")
	if len(all) != 0 {
		t.Errorf("restricted %+v, want none", all)
	}
	w.failing("", "", "")
	types := w.restricter()
	types.NodeTypes = broken{w.nodeTypes}
	_, err = types.Change(t.Context(), approver.Change{Environment: "prod", Reason: "x", Add: registrytest.SourceOf(release)})
	wantError(t, "node types cannot be listed", err, registry.CodeUnavailable, "no node types")
}

// broken are node types that cannot be listed.
type broken struct{ storage.NodeTypes }

func (broken) List(context.Context, string, int) ([]registry.Named[artifact.Node], error) {
	return nil, registry.Errorf(registry.CodeUnavailable, "no node types")
}

// A node type that loses its best engine gets the next one, if that is not restricted.
func TestRestrictedNodeTypes(t *testing.T) {
	t.Parallel()
	w := setup(t, nil)
	engines := registrytest.Engines()
	engines[2].Toolchain.Version = "1.29.0" // int8 for v3
	w.promoted(t, registrytest.Build{Engines: engines})
	w.putNode(t, "old", "v1")
	w.putNode(t, "new", "v4")
	other := registrytest.Node("v4")
	other.CPU.Arch = "arm64"
	if err := w.nodeTypes.Put(t.Context(), "arm", other); err != nil {
		t.Fatal(err)
	}
	old := evidence.Restriction{Kind: evidence.RestrictToolchain, Toolchain: "onnxruntime", Versions: "<1.30.0"}
	all, err := w.restricter().Change(t.Context(), approver.Change{Environment: "staging", Reason: "recalled", Add: []evidence.Restriction{old}})
	if err != nil || len(all[0].Heads) != 1 || len(all[0].Heads[0].Engines) != 1 {
		t.Fatalf("restricted %+v, error %v, want one engine", all, err)
	}
	label := all[0].Heads[0].Engines[0].Label
	types := all[0].Heads[0].NodeTypes
	if label != "linux-amd64-v3/int8" || len(types) != 1 || types[0] != (approver.AffectedNodeType{Name: "new", Engine: label, Instead: "linux-amd64-v3/fp32"}) {
		t.Errorf("restricted %s, node types %+v, want that new gets fp32 in its place, and no other type", label, types)
	}
}

// A list concerns nodes that report a restricted engine, or a release that is gone or cannot be read. What cannot be read is named once.
func TestRestrictedNodes(t *testing.T) {
	t.Parallel()
	w := setup(t, nil)
	engines := registrytest.Engines()
	engines[2].Toolchain.Version = "1.29.0"
	release := w.promoted(t, registrytest.Build{Engines: engines})
	bad, good := release.Engines[0], release.Engines[0]
	for _, e := range release.Engines {
		if e.Toolchain.Version == "1.29.0" {
			bad = e
		} else {
			good = e
		}
	}
	gone := registry.Digest("sha256:" + strings.Repeat("00", 32))
	report := func(name string, r, e registry.Digest) storage.NodeReport {
		return storage.NodeReport{Node: name, Environment: "prod", Model: registrytest.Model, Release: r, Engine: e}
	}
	w.nodes = []storage.NodeReport{report("a", release.Digest, bad.Digest), report("b", release.Digest, good.Digest),
		report("c", gone, good.Digest), report("d", release.Digest, bad.Digest)}
	old := evidence.Restriction{Kind: evidence.RestrictToolchain, Toolchain: "onnxruntime", Versions: "<1.30.0"}
	names := func(r approver.Restricted) (all string) {
		for _, n := range r.Nodes {
			all += n.Node
		}
		return all
	}
	all := must[[]approver.Restricted](t)(w.restricter().Change(t.Context(), approver.Change{Reason: "recalled", Add: []evidence.Restriction{old}}))
	if got := names(all[1]); got != "acd" || names(all[0]) != "" || len(all[1].Unread) != 0 {
		t.Errorf("nodes %q and %q, unread %+v, want acd in prod, and nothing unread: a release that is gone is not damaged", got, names(all[0]), all[1].Unread)
	}
	w.failing("release", string(release.Digest), registry.CodeDigest)
	damaged := must[[]approver.Restricted](t)(w.restricter().List(t.Context(), "prod"))[0]
	want := approver.Unread{Environment: "prod", Model: registrytest.Model, Release: release.Digest, Reason: "release fails"}
	if got := names(damaged); got != "abcd" || len(damaged.Unread) != 1 || damaged.Unread[0] != want || len(damaged.Heads) != 0 {
		t.Errorf("with a damaged release: nodes %q, unread %+v, heads %+v, want all nodes, and the release once", got, damaged.Unread, damaged.Heads)
	}
	w.failing("claims", string(release.Digest), registry.CodeInternal)
	damaged = must[[]approver.Restricted](t)(w.restricter().List(t.Context(), "prod"))[0]
	if got := names(damaged); got != "abcd" || len(damaged.Unread) != 1 {
		t.Errorf("with evidence that cannot be read: nodes %q, unread %+v, want all nodes, and the release once", got, damaged.Unread)
	}
}

// A release that only nodes have is looked at as those at heads are.
func TestRestrictedNodesOfOlderReleases(t *testing.T) {
	t.Parallel()
	w := setup(t, nil)
	older := w.promoted(t, registrytest.Build{})
	head := w.promoted(t, registrytest.Build{Version: "1.1.0", Salt: "second"})
	for _, r := range []artifact.Release{older, head} {
		w.nodes = append(w.nodes, storage.NodeReport{Node: r.Version, Environment: "prod", Model: registrytest.Model, Release: r.Digest, Engine: r.Engines[0].Digest})
	}
	change := approver.Change{Environment: "prod", Reason: "recalled", Add: registrytest.SourceOf(older)}
	all := must[[]approver.Restricted](t)(w.restricter().Change(t.Context(), change))[0]
	if len(all.Heads) != 0 || len(all.Nodes) != 1 || all.Nodes[0].Node != "1.0.0" {
		t.Errorf("heads %+v, nodes %+v, want the node with the older release alone", all.Heads, all.Nodes)
	}
	for _, call := range []string{"release", "claims"} {
		w.failing(call, string(older.Digest), registry.CodeUnavailable)
		_, err := w.restricter().List(t.Context(), "prod")
		wantError(t, call+" of the older release fails", err, registry.CodeUnavailable, call+" fails")
		w.failing(call, string(older.Digest), registry.CodeDigest)
		listed := must[[]approver.Restricted](t)(w.restricter().List(t.Context(), "prod"))[0]
		if len(listed.Nodes) != 1 || len(listed.Unread) != 1 || listed.Unread[0].Release != older.Digest {
			t.Errorf("%s of the older release is damaged: nodes %+v, unread %+v, want both", call, listed.Nodes, listed.Unread)
		}
	}
	w.fail = func(call, _, what string) error {
		if call == "release" && (what == string(older.Digest) || what == string(head.Digest)) {
			return registry.Errorf(registry.CodeDigest, "damaged")
		}
		return nil
	}
	if listed := must[[]approver.Restricted](t)(w.restricter().List(t.Context(), "prod"))[0]; len(listed.Unread) != 2 {
		t.Errorf("two damaged releases of a model: unread %+v, want both", listed.Unread)
	}
}

// A page of node types that is full is followed by the next one.
func TestRestrictReadsAllNodeTypes(t *testing.T) {
	t.Parallel()
	w := setup(t, nil)
	release := w.Build(t, registrytest.Build{})
	for i := range storage.MaxPage + 1 {
		w.putNode(t, fmt.Sprintf("type-%04d", i), "v4")
	}
	all := must[[]approver.Restricted](t)(w.restricter().Change(t.Context(), approver.Change{Environment: "staging", Reason: "x", Add: registrytest.SourceOf(release)}))
	if got := len(all[0].Heads[0].NodeTypes); got != storage.MaxPage+1 {
		t.Errorf("%d node types lose their engine, want %d", got, storage.MaxPage+1)
	}
}
