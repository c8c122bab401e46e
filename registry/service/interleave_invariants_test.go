package service_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/storage"
)

// broken says which rule a registry breaks that must hold whatever was asked of it, or "".
func (a *arena) broken(ctx context.Context) string {
	heads := make(map[string]registry.Digest)
	var before history.Event
	told := newModel(a.names.facts, a.chain()) // the claims and holds that the history had by then
	for e, err := range a.db.History(ctx, history.HistoryQuery{}) {
		if err == nil {
			err = e.VerifyChain(before)
		}
		if err != nil {
			return fmt.Sprintf("the history: %v", err)
		}
		if wrong := a.unlawful(told, e); wrong != "" {
			return fmt.Sprintf("row %d of the history: %s", e.Seq, wrong)
		}
		if e.Kind != history.EventAttach {
			if heads[e.Environment] != e.Previous {
				return fmt.Sprintf("row %d of the history moves the head of %s from where it was not", e.Seq, e.Environment)
			}
			heads[e.Environment] = e.Release
		}
		before = e
	}
	all, err := a.db.Heads(ctx, "", "")
	if err != nil || len(all) != len(heads) {
		return fmt.Sprintf("there are %d heads, want %d (%v)", len(all), len(heads), err)
	}
	there := a.observe()
	for e, names := range told.claims {
		for name := range names {
			if name != "" && !there.claims[e][name] {
				return fmt.Sprintf("the history says that %s is in %s, and it is not", name, e)
			}
		}
	}
	for _, h := range all {
		if h.Release != heads[h.Environment] {
			want := a.names.versions[heads[h.Environment]]
			return fmt.Sprintf("the head of %s is at %s, and the history ends with %s", h.Environment, a.names.versions[h.Release], want)
		}
	}
	if left, _ := a.db.Pending(ctx); len(left) > 0 {
		return fmt.Sprintf("nothing is under way, and there are the intents %v", left)
	}
	return ""
}

// unlawful says why an event must not come after what is told, to which it is added.
func (a *arena) unlawful(told *model, e history.Event) string {
	version, head := a.names.versions[e.Release], told.heads[e.Environment]
	switch e.Kind {
	case history.EventAttach:
		add(told.claims, e.Environment, a.names.bundles[e.Evidence[0]])
		return ""
	case history.EventPromote:
		for _, d := range e.Evidence { // a promotion records what it rests on, if that is not recorded yet
			add(told.claims, e.Environment, a.names.bundles[d])
		}
		if head.hold != "" {
			return fmt.Sprintf("%s was promoted to %s, which is held: %s", version, e.Environment, head.hold)
		}
		if told.against(version, []string{factQuarantine, factFail}, told.from(e.Environment), e.Environment) {
			return fmt.Sprintf("%s was promoted to %s against evidence that was recorded before", version, e.Environment)
		}
	case history.EventRollback:
		if told.against(version, []string{factQuarantine}, e.Environment) {
			return fmt.Sprintf("%s is back at %s, which was in quarantine before", e.Environment, version)
		}
		head.hold = e.Reason
	case history.EventHoldSet:
		head.hold = e.Reason
	case history.EventHoldRelease:
		head.hold = ""
	}
	told.heads[e.Environment] = modelHead{version, head.hold}
	return ""
}

// lost says what of an answer that was given is not so any more, or "".
func (v verdict) lost(t testing.TB, got answer) string {
	ctx := t.Context()
	if got.err != nil {
		return ""
	}
	if got.evidence != "" {
		if _, err := v.a.replica(t, 9).Bundle(ctx, got.at.environment, registrytest.Model, got.evidence); err != nil {
			return fmt.Sprintf("the evidence is gone: %v", err)
		}
	}
	for d, isManifest := range got.pushed {
		key := storage.GCRecordKey{Digest: d, Manifest: isManifest}
		if err := v.a.readable(ctx, d); err != nil {
			return fmt.Sprintf("the bytes of what was pushed are gone: %v", err)
		}
		if _, ok := v.a.db.Record(got.at.in, key); !ok {
			return fmt.Sprintf("%s does not hold %s, which was pushed", got.at.in, d)
		}
	}
	if got.restored != nil {
		if wrong := got.restored.whole(t); wrong != "" {
			return "the backup: " + wrong
		}
	}
	return ""
}

// readable reads content and compares it with its digest.
func (a *arena) readable(ctx context.Context, d registry.Digest) error {
	blob, _, err := a.bytes().Open(ctx, d)
	if err != nil {
		return err
	}
	raw, err := io.ReadAll(blob)
	if err == nil && d.Algorithm().FromBytes(raw) != d {
		err = fmt.Errorf("%s has other bytes", d)
	}
	return errors.Join(err, blob.Close())
}

// whole says what is missing at a head of a protected environment, or "": bytes, the summary
// that allows it, its tags.
func (a *arena) whole(t testing.TB) string {
	ctx, s := t.Context(), a.replica(t, 9)
	heads, err := s.Heads(ctx, "", "")
	if err != nil {
		return err.Error()
	}
	for _, h := range heads {
		repository := registry.Repository(h.Environment, h.Model)
		r, err := s.Release(ctx, h.Environment, h.Model, "")
		if err == nil {
			err = a.store().Rehash(ctx, repository, r)
		}
		if err != nil {
			return fmt.Sprintf("the head of %s: %v", h.Environment, err)
		}
		claims, _, err := s.Claims(ctx, h.Environment, r)
		if err != nil {
			return fmt.Sprintf("the evidence of %s: %v", h.Environment, err)
		}
		if _, _, ok := policy.FindVSA(claims, r, a.environments.ResourceURI(h.Environment, h.Model)); !ok && h.Environment != "staging" {
			return fmt.Sprintf("the head of %s, %s, has no summary", h.Environment, h.Version)
		}
		names := a.db
		if a.isFar(repository) {
			names = a.far
		}
		for tag, want := range r.Tags() {
			if d, err := names.Tag(ctx, repository, tag); err != nil || d != want {
				return fmt.Sprintf("tag %s of %s names %s (%v), and the head is %s", tag, repository, a.names.versions[d], err, h.Version)
			}
		}
	}
	return ""
}
