package api

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/policy"
)

// ReleaseSide is a release that is compared with another one of its model.
type ReleaseSide struct {
	Environment string // that it is read from
	Release     artifact.Release
	Claims      []evidence.Claim
}

// ReleaseComparison is what differs between two releases of a model.
type ReleaseComparison struct {
	Model   string           `json:"model"`
	From    ComparedRelease  `json:"from"`
	To      ComparedRelease  `json:"to"`
	Changes []string         `json:"changes"`           // in words, in the order of their weight for a decision
	Looser  []string         `json:"looser"`            // limits of To that allow more
	Tighter []string         `json:"tighter"`           // limits of From that allow more
	Differs []string         `json:"interface"`         // what a caller of From would notice of To
	Partly  bool             `json:"partial,omitempty"` // limits and interfaces were not compared
	Engines []ComparedEngine `json:"engines"`           // of either, by label
}

// ComparedRelease names a release that is compared.
type ComparedRelease struct {
	Environment string          `json:"environment"`
	Version     string          `json:"version"`
	Release     registry.Digest `json:"release"`
}

// ComparedEngine is the engine of a label in both releases.
type ComparedEngine struct {
	Label       string                    `json:"label"`
	From        registry.Digest           `json:"from,omitempty"` // empty: that release has none
	To          registry.Digest           `json:"to,omitempty"`
	OperatorsOf string                    `json:"operatorsOf,omitempty"` // what operators were counted in; empty: they are not known of both, or are not alike
	Operators   []evidence.OperatorChange `json:"operators"`             // those that To has not as often
}

// ReadSide reads a release of a model in the last environment of the chain that has it and that the context's principal may read. Errors:
// CodeNotFound, CodeForbidden.
func ReadSide(ctx context.Context, from Interface, model string, d registry.Digest) (ReleaseSide, error) {
	environments, err := from.Environments(ctx)
	if err != nil {
		return ReleaseSide{}, err
	}
	err = registry.Errorf(registry.CodeNotFound, "no environment has a release %s of %s", d, model)
	for _, e := range slices.Backward(environments.List) {
		release, readErr := from.Release(ctx, e.Name, model, string(d))
		switch {
		case registry.HasCode(readErr, registry.CodeNotFound) || registry.HasCode(readErr, registry.CodeForbidden):
			err = readErr
			continue
		case readErr != nil:
			return ReleaseSide{}, readErr
		}
		claims, _, readErr := from.Claims(ctx, e.Name, release)
		return ReleaseSide{e.Name, release, claims}, readErr
	}
	return ReleaseSide{}, err
}

// CompareSides compares two releases of a model. compare may be nil. Errors: as compare.
func CompareSides(ctx context.Context, compare policy.CompareReleases, from, to ReleaseSide) (ReleaseComparison, error) {
	c := ReleaseComparison{
		Model: to.Release.Model, From: from.named(), To: to.named(), Changes: ReleaseChanges(from.Release, to.Release), Engines: comparedEngines(from, to),
		Partly: compare == nil,
	}
	c.Changes, c.Looser, c.Tighter, c.Differs = append([]string{}, c.Changes...), []string{}, []string{}, []string{} // lists in JSON
	if compare == nil {
		return c, nil
	}
	forth, err := compare(ctx, to.located(), from.located())
	if err != nil {
		return c, err
	}
	back, err := compare(ctx, from.located(), to.located())
	c.Looser, c.Tighter, c.Differs = append(c.Looser, forth.Looser...), append(c.Tighter, back.Looser...), append(c.Differs, forth.Interface...)
	return c, err
}

func (s ReleaseSide) named() ComparedRelease {
	return ComparedRelease{s.Environment, s.Release.Tag(), s.Release.Digest}
}

func (s ReleaseSide) located() policy.Located {
	return policy.Located{Repository: registry.Repository(s.Environment, s.Release.Model), Release: s.Release}
}

// comparedEngines lists the engines of both releases by label.
func comparedEngines(from, to ReleaseSide) []ComparedEngine {
	byLabel := make(map[string]ComparedEngine)
	for _, e := range from.Release.Engines {
		byLabel[e.Label()] = ComparedEngine{Label: e.Label(), From: e.Digest}
	}
	for _, e := range to.Release.Engines {
		both := byLabel[e.Label()]
		both.Label, both.To = e.Label(), e.Digest
		byLabel[e.Label()] = both
	}
	all := []ComparedEngine{}
	for _, e := range byLabel {
		e.Operators = []evidence.OperatorChange{}
		if e.From != "" && e.To != "" {
			was, is := evidence.OperatorsOf(from.Release, from.Claims, e.From), evidence.OperatorsOf(to.Release, to.Claims, e.To)
			if was != nil && is != nil && was.Of == is.Of {
				e.OperatorsOf, e.Operators = is.Of, append(e.Operators, was.Changes(*is)...)
			}
		}
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b ComparedEngine) int { return cmp.Compare(a.Label, b.Label) })
	return all
}

// ReleaseChanges names what differs between two releases of a model, in the order of its weight for a decision.
func ReleaseChanges(was, is artifact.Release) []string {
	var lines []string
	add := func(format string, args ...any) {
		lines = append(lines, registry.PlainText(fmt.Sprintf(format, args...)))
	}
	if was.Interface != is.Interface {
		add("the interface changes")
	}
	if was.Limits != is.Limits {
		add("the limits change")
	}
	if was.Sources != is.Sources {
		add("the reference model or the cases change")
	}
	before := make(map[string]artifact.Engine)
	for _, e := range was.Engines {
		before[e.Label()] = e
	}
	for _, e := range is.Engines {
		old, ok := before[e.Label()]
		delete(before, e.Label())
		switch {
		case !ok:
			add("new engine %s", e.Label())
		case old.Toolchain.Name != e.Toolchain.Name || old.Toolchain.Version != e.Toolchain.Version:
			add("%s is built by %s %s instead of %s %s", e.Label(), e.Toolchain.Name, e.Toolchain.Version, old.Toolchain.Name, old.Toolchain.Version)
		case !old.NativeCode && e.NativeCode:
			add("%s carries native code", e.Label())
		case old.Digest != e.Digest:
			add("the bytes of %s change", e.Label())
		}
	}
	var gone []string
	for label := range before {
		gone = append(gone, label)
	}
	slices.Sort(gone)
	for _, label := range gone {
		add("engine %s is gone", label)
	}
	return lines
}
