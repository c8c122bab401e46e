package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"mlpromote.dev/mlpromote/registry"
)

// Registry counts and traces operations that change environments, and resolves.
func (t *Telemetry) Registry(inner registry.Interface) registry.Interface {
	return observed{inner, t}
}

// observed passes on the operations that it does not count.
type observed struct {
	registry.Interface
	t *Telemetry
}

// trace begins a span and returns the function that ends it.
func (o observed) trace(ctx context.Context, name, environment, model string) (context.Context, func(error)) {
	if !o.t.traces {
		return ctx, func(error) {}
	}
	ctx, span := o.t.tracer.Start(ctx, name, trace.WithAttributes(attribute.String("mlpromote.environment", environment),
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

func (o observed) Resolve(ctx context.Context, q registry.ResolveQuery) (registry.Resolution, error) {
	ctx, end := o.trace(ctx, "resolve", q.Environment, q.Model)
	r, err := o.Interface.Resolve(ctx, q)
	end(err)
	o.t.resolves.WithLabelValues(result(err)).Inc()
	return r, err
}

func (o observed) Publish(ctx context.Context, p registry.Publication) (registry.Head, error) {
	ctx, end := o.trace(ctx, "publish", "", p.Model)
	head, err := o.Interface.Publish(ctx, p)
	end(err)
	return head, err
}

func (o observed) Attach(ctx context.Context, a registry.Attachment) (registry.Digest, error) {
	ctx, end := o.trace(ctx, "attach", a.Environment, a.Model)
	d, err := o.Interface.Attach(ctx, a)
	end(err)
	o.t.attachments.WithLabelValues(result(err)).Inc()
	return d, err
}

func (o observed) Attest(ctx context.Context, r registry.AttestRequest) (registry.Attested, error) {
	ctx, end := o.trace(ctx, "attest", r.Environment, r.Model)
	a, err := o.Interface.Attest(ctx, r)
	end(err)
	o.t.attachments.WithLabelValues(result(err)).Inc()
	return a, err
}

func (o observed) Promote(ctx context.Context, r registry.PromoteRequest) (registry.Promotion, error) {
	ctx, end := o.trace(ctx, "promote", r.To, r.Model)
	p, err := o.Interface.Promote(ctx, r)
	end(err)
	if r.DryRun {
		return p, err
	}
	label := result(err)
	if err == nil && p.Unchanged {
		label = unchanged
	}
	o.t.promotions.WithLabelValues(label).Inc()
	if err == nil && p.Decision.Skipped != nil {
		o.t.breakGlass.Inc()
	}
	if registry.HasCode(err, registry.CodePolicy) {
		o.refused(p.Decision)
	}
	return p, err
}

// noRequirement counts refusals without an unmet requirement, such as a hold or an existing version.
const noRequirement = "none"

// refused counts each unmet requirement once.
func (o observed) refused(d registry.Decision) {
	seen := make(map[string]bool)
	for _, unmet := range d.Unmet() {
		if !seen[unmet.Name] {
			seen[unmet.Name] = true
			o.t.refusals.WithLabelValues(unmet.Name).Inc()
		}
	}
	if len(seen) == 0 {
		o.t.refusals.WithLabelValues(noRequirement).Inc()
	}
}

func (o observed) Rollback(ctx context.Context, r registry.RollbackRequest) (registry.Promotion, error) {
	ctx, end := o.trace(ctx, "rollback", r.Environment, r.Model)
	p, err := o.Interface.Rollback(ctx, r)
	end(err)
	o.t.rollbacks.WithLabelValues(result(err)).Inc()
	return p, err
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
