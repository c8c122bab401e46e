package service_test

import (
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/registrytest"
)

// What a caller leaves out or misspells is refused, and is not taken for the head or for another place.
func TestNamesThatAreRefused(t *testing.T) {
	t.Parallel()
	const model = registrytest.Model
	w := setup(t)
	r := w.Promoted(t, registrytest.Build{})
	for name, c := range map[string]struct {
		code registry.Code
		err  func() error
	}{
		"publish an unset variable":  {registry.CodeInvalid, func() error { _, err := w.Publish(t.Context(), api.Publication{Model: model}); return err }},
		"engine of no digest":        {registry.CodeInvalid, func() error { _, err := w.Engine(t.Context(), "prod", model, "latest"); return err }},
		"engine of no environment":   {registry.CodeNotFound, func() error { _, err := w.Engine(t.Context(), "prd", model, r.Engines[0].Digest); return err }},
		"engine of no model":         {registry.CodeInvalid, func() error { _, err := w.Engine(t.Context(), "prod", "../x", r.Engines[0].Digest); return err }},
		"bundle of no digest":        {registry.CodeInvalid, func() error { _, err := w.Interface.Bundle(t.Context(), "prod", model, "latest"); return err }},
		"claims of no environment":   {registry.CodeNotFound, func() error { _, _, err := w.Claims(t.Context(), "prd", r); return err }},
		"heads of no environment":    {registry.CodeNotFound, func() error { _, err := w.Heads(t.Context(), "prd", ""); return err }},
		"models of no environment":   {registry.CodeNotFound, func() error { _, err := w.Models(t.Context(), "prd", "", 0); return err }},
		"releases of no environment": {registry.CodeNotFound, func() error { _, err := w.Releases(t.Context(), "prd", model, "", 0); return err }},
		"resolve in no environment": {registry.CodeNotFound, func() error {
			_, err := w.Resolve(t.Context(), api.ResolveQuery{Environment: "prd", Model: model, Node: registrytest.Node("v3")})
			return err
		}},
		"hold in no environment":           {registry.CodeNotFound, func() error { return w.SetHold(t.Context(), "prd", model, "wait") }},
		"hold where builds write":          {registry.CodeInvalid, func() error { return w.SetHold(t.Context(), "staging", model, "wait") }},
		"hold without a reason":            {registry.CodeInvalid, func() error { return w.SetHold(t.Context(), "prod", model, " \t") }},
		"hold with a reason of many lines": {registry.CodeInvalid, func() error { return w.SetHold(t.Context(), "prod", model, "wait\x1b[2J") }},
		"release of no hold": {registry.CodeNotFound, func() error {
			return w.ReleaseHold(t.Context(), api.HoldRelease{Environment: "prod", Model: model, Reason: "go on"})
		}},
		"accept in no environment": {registry.CodeNotFound, func() error { return w.AcceptHistory(t.Context(), "prd", model, "known") }},
		"rollback where builds write": {registry.CodeInvalid, func() error {
			_, err := w.Rollback(t.Context(), api.RollbackRequest{Environment: "staging", Model: model, Reason: "slow"})
			return err
		}},
		"rollback to no version": {registry.CodeNotFound, func() error {
			_, err := w.Rollback(t.Context(), api.RollbackRequest{Environment: "prod", Model: model, Version: "7.7.7", Reason: "slow"})
			return err
		}},
		"rollback to where it is": {registry.CodeInvalid, func() error {
			_, err := w.Rollback(t.Context(), api.RollbackRequest{Environment: "prod", Model: model, Version: "1.0.0", Reason: "slow"})
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := w.head(t)
			if err := c.err(); registry.CodeOf(err) != c.code {
				t.Errorf("error %v (%s), want %s", err, registry.CodeOf(err), c.code)
			}
			if after := w.head(t); after != before {
				t.Errorf("the head became %+v, want %+v as before", after, before)
			}
		})
	}
}
