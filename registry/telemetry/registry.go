package telemetry

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/rest"
)

// Registry counts calls, and traces operations with Traced in their rows.
func (t *Telemetry) Registry(inner api.Interface) api.Interface {
	counters := map[string]*prometheus.CounterVec{
		rest.Resolve.Name: t.resolves, rest.Attach.Name: t.attachments, rest.Attest.Name: t.attachments, rest.Rollback.Name: t.rollbacks,
	}
	return rest.Wrap(inner, func(ctx context.Context, c rest.Call) error {
		row := c.Describe()
		if !row.Traced {
			return c.Do(ctx)
		}
		environment, model := c.At()
		ctx, end := t.trace(ctx, row.Name, environment, model)
		err := c.Do(ctx)
		end(err)
		if counter := counters[row.Name]; counter != nil {
			counter.WithLabelValues(result(err)).Inc()
		}
		if r, ok := c.Request().(*api.PromoteRequest); ok && !r.DryRun {
			t.promoted(c.Answer().(*api.Promotion), err)
		}
		return err
	})
}

// trace begins a span and returns the function that ends it.
func (t *Telemetry) trace(ctx context.Context, name, environment, model string) (context.Context, func(error)) {
	if !t.traces {
		return ctx, func(error) {}
	}
	ctx, span := t.tracer.Start(ctx, name, trace.WithAttributes(attribute.String("mlpromote.environment", environment),
		attribute.String("mlpromote.model", model)))
	return ctx, func(err error) {
		if err != nil {
			span.SetAttributes(attribute.String("mlpromote.code", string(registry.CodeOf(err))))
			span.SetStatus(codes.Error, "")
		}
		span.End()
	}
}

// success is the result label of operations that succeeded. For the others, the label is the
// error code.
const success = "success"

// unchanged is the result label of promotions of a release that is already the head.
const unchanged = "unchanged"

func result(err error) string {
	if err == nil {
		return success
	}
	return string(registry.CodeOf(err))
}

// promoted counts a promotion.
func (t *Telemetry) promoted(p *api.Promotion, err error) {
	label := result(err)
	if err == nil && p.Unchanged {
		label = unchanged
	}
	t.promotions.WithLabelValues(label).Inc()
	if err == nil && p.Decision.Skipped != nil {
		t.breakGlass.Inc()
	}
	if registry.HasCode(err, registry.CodePolicy) {
		t.unmet(p.Decision)
	}
}

// noRequirement counts refusals without an unmet requirement, such as a hold or an existing version.
const noRequirement = "none"

// unmet counts each unmet requirement once.
func (t *Telemetry) unmet(d policy.Decision) {
	seen := make(map[string]bool)
	for _, u := range d.Unmet() {
		if !seen[u.Name] {
			seen[u.Name] = true
			t.refusals.WithLabelValues(u.Name).Inc()
		}
	}
	if len(seen) == 0 {
		t.refusals.WithLabelValues(noRequirement).Inc()
	}
}

// Collection has the counts of a run of garbage collection, by kind.
type Collection struct {
	Marked, Unmarked, Manifests, Members, Blobs, Leftovers, SkippedRepositories int
	Bytes                                                                       int64
}

// Collected counts a run of garbage collection and its duration.
func (t *Telemetry) Collected(did Collection, took time.Duration, err error) {
	t.gc.runs.WithLabelValues(result(err)).Inc()
	t.gc.seconds.Observe(took.Seconds())
	for change, n := range map[string]int{"marked": did.Marked, "unmarked": did.Unmarked} {
		t.gc.marked.WithLabelValues(change).Add(float64(n))
	}
	for kind, n := range map[string]int{"manifest": did.Manifests, "member": did.Members, "blob": did.Blobs, "leftover": did.Leftovers} {
		t.gc.removed.WithLabelValues(kind).Add(float64(n))
	}
	t.gc.bytes.Add(float64(did.Bytes))
	if err == nil {
		t.gc.skipped.Set(float64(did.SkippedRepositories))
		t.gc.last.SetToCurrentTime()
	}
}
