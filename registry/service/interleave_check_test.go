package service_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/storage"
)

// verdict looks at the end of a schedule: what the operations answered and left must be what
// they would have in some order, one after the other. Of two where one had ended before the
// other began, that one comes first.
type verdict struct {
	a          *arena
	operations []operation
	answers    []answer
}

// fault says what is wrong with a schedule, or "".
func (v verdict) fault(t testing.TB, start *model) string {
	for i, s := range v.a.strands {
		if s.pending != nil {
			return fmt.Sprintf("%s waits for ever, for %s", v.operations[i].name, s.pending.name)
		}
	}
	if wrong := v.a.broken(t.Context()); wrong != "" {
		return wrong
	}
	if v.a.fine || v.a.clock%8 == 0 { // now and then, since it reads everything
		if wrong := v.a.whole(t); wrong != "" {
			return wrong
		}
	}
	for i := range v.answers {
		if wrong := v.lost(t, v.answers[i]); wrong != "" {
			return v.operations[i].name + ": " + wrong
		}
	}
	return v.unexplained(start)
}

// unexplained tries every order.
func (v verdict) unexplained(start *model) string {
	end := v.a.observe()
	var why []string
	for order := range permutations(len(v.operations)) {
		if v.inTime(order) {
			wrong := v.inOrder(order, start.copy(), end)
			if wrong == "" {
				return ""
			}
			why = append(why, fmt.Sprintf("not in the order %v: %s", order, wrong))
		}
	}
	return "no order explains it:\n  " + strings.Join(why, "\n  ") + "\nin the end:\n" + end.String()
}

// inTime reports whether an order has those first that had ended first.
func (v verdict) inTime(order []int) bool {
	for i, later := range order {
		for _, earlier := range order[:i] {
			if v.a.strands[later].ended < v.a.strands[earlier].begun {
				return false
			}
		}
	}
	return true
}

// inOrder says in what an order is not what happened.
func (v verdict) inOrder(order []int, m *model, end *model) string {
	for _, i := range order {
		got := v.answers[i]
		if v.mayHaveLost(i) {
			continue
		}
		if want := v.operations[i].model(m, got.said); want != got.said {
			return fmt.Sprintf("%s: %q (%v), want %q", v.operations[i].name, got.said, got.err, want)
		}
		if got.restored != nil {
			if wrong := m.differs(got.restored.observe(), true); wrong != "" {
				return "the backup: " + wrong
			}
		}
	}
	return m.differs(end, false)
}

// mayHaveLost reports whether an operation did nothing since another one changed the same
// head at the same time. Promotions are decided again instead. A rollback that finds another
// one unfinished is taken for the same request once more, and finishes that. To another
// registry's environment, one that is about to lose looks unfinished too.
func (v verdict) mayHaveLost(i int) bool {
	said, isFinished := strings.CutPrefix(v.answers[i].said, "already ")
	isRollback := strings.HasPrefix(v.operations[i].name, "roll back")
	if !(isFinished && isRollback) && said != string(registry.CodeConflict) || strings.HasPrefix(v.operations[i].name, "promote") {
		return false
	}
	for j, other := range v.operations {
		overlap := v.a.strands[i].begun < v.a.strands[j].ended && v.a.strands[j].begun < v.a.strands[i].ended
		won := strings.HasPrefix(v.answers[j].said, "ok")
		if isFinished {
			won = strings.HasPrefix(other.name, "roll back") && slices.Contains([]string{"ok " + said, string(registry.CodeConflict)}, v.answers[j].said)
		}
		if j != i && overlap && won && other.head == v.operations[i].head {
			return true
		}
	}
	return false
}

// observe reads what a model has.
func (a *arena) observe() *model {
	ctx := context.Background()
	m := newModel(a.names.facts, a.chain())
	heads, _ := a.db.Heads(ctx, "", registrytest.Model)
	for _, h := range heads {
		m.heads[h.Environment] = modelHead{a.names.versions[h.Release], h.Hold}
	}
	for e := range a.db.History(ctx, history.HistoryQuery{}) {
		if e.Kind != history.EventAttach {
			m.note(e.Environment, string(e.Kind), a.names.versions[e.Release], a.names.versions[e.Previous], e.Reason)
		}
	}
	for _, e := range a.environments.List {
		names := a.db
		if e.External() {
			names = a.far
		}
		for name, f := range a.names.facts {
			if _, ok := names.Record(registry.Repository(e.Name, registrytest.Model), storage.GCRecordKey{Digest: f.bundle, Manifest: true}); ok {
				add(m.claims, e.Name, name)
			}
		}
	}
	return m
}

// permutations are all orders of n things.
func permutations(n int) func(yield func([]int) bool) {
	return func(yield func([]int) bool) {
		order := make([]int, n)
		for i := range order {
			order[i] = i
		}
		var permute func(at int) bool
		permute = func(at int) bool {
			if at == n {
				return yield(slices.Clone(order))
			}
			for i := at; i < n; i++ {
				order[at], order[i] = order[i], order[at]
				if !permute(at + 1) {
					return false
				}
				order[at], order[i] = order[i], order[at]
			}
			return true
		}
		permute(0)
	}
}
