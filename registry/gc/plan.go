package gc

import (
	"context"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
)

// Plan lists the deletions that a collection would make now, and why content would stay.
type Plan struct {
	Repositories        []Inventory
	SkippedRepositories []SkippedRepository
	Blobs               int   // blobs with bytes to delete
	Bytes               int64 // of those blobs
}

// Inventory is a repository with the outcome for each of its records.
type Inventory struct {
	Repository string
	Outcomes   []Outcome
}

// Plan computes the plan and changes nothing. Errors: as Collect.
func (c *Collector) Plan(ctx context.Context) (Plan, error) {
	s, err := c.survey(ctx)
	if err != nil {
		return Plan{}, err
	}
	var plan Plan
	err = s.each(ctx, func(repository string) error {
		held, err := s.Store.Records(ctx, repository)
		if err != nil {
			return err
		}
		links := make(map[registry.Digest]artifact.Links)
		outcomes, err := s.evaluate(ctx, repository, held, links)
		if err != nil {
			return err
		}
		s.want(repository, outcomes, links)
		plan.Repositories = append(plan.Repositories, Inventory{repository, outcomes})
		return nil
	})
	if err != nil {
		return Plan{}, err
	}
	plan.SkippedRepositories = s.skipped
	return plan, c.planBytes(ctx, s, &plan)
}

// planBytes counts the bytes that no repository would hold.
func (c *Collector) planBytes(ctx context.Context, s *survey, plan *Plan) error {
	stays, err := c.remaining(ctx, *plan)
	if err != nil {
		return err
	}
	due := make(map[registry.Digest]bool)
	for d, err := range c.Garbage.MarkedBefore(ctx, s.now.Add(-c.wait())) {
		if err != nil {
			return err
		}
		due[d] = true
	}
	for d, err := range c.Blobs.Digests(ctx) {
		if err != nil {
			return err
		}
		if stays[d] || !c.Alone && !due[d] {
			continue
		}
		sizes, err := c.sizes(ctx, []registry.Digest{d})
		if err != nil {
			return err
		}
		plan.Blobs++
		plan.Bytes += sizes[d]
	}
	return nil
}

// remaining returns all digests that some repository would still hold, with the parts that they are composed of.
func (c *Collector) remaining(ctx context.Context, plan Plan) (map[registry.Digest]bool, error) {
	stays := make(map[registry.Digest]bool)
	for _, r := range plan.Repositories {
		for _, f := range r.Outcomes {
			if !f.Delete {
				stays[f.Digest] = true
			}
		}
	}
	for _, r := range plan.SkippedRepositories {
		held, err := c.Store.Records(ctx, r.Repository)
		if err != nil {
			return nil, err
		}
		for _, h := range held {
			stays[h.Digest] = true
		}
	}
	for d, err := range c.composable(ctx) {
		if err != nil {
			return nil, err
		}
		if !stays[d] {
			continue
		}
		recipe, err := c.Garbage.Recipe(ctx, d)
		if registry.HasCode(err, registry.CodeNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, part := range recipe.Parts() {
			stays[part] = true
		}
	}
	return stays, nil
}
