package web

import (
	"context"
	"fmt"
	"slices"

	"mlpromote.dev/mlpromote/registry"
)

// changes lists what a release changes against the one that it would replace. known is false where the reader may
// not see one of them, or there is none to compare with.
func (s *site) changes(ctx context.Context, from, to registry.Head) (lines []string, known bool, err error) {
	if to.Release == "" {
		return nil, false, nil
	}
	next, err := s.Registry.Release(ctx, from.Environment, from.Model, string(from.Release))
	if err == nil {
		var now registry.Release
		if now, err = s.Registry.Release(ctx, to.Environment, to.Model, string(to.Release)); err == nil {
			return differences(now, next), true, nil
		}
	}
	if registry.HasCode(err, registry.CodeForbidden) {
		err = nil
	}
	return nil, false, err
}

// differences names what differs between two releases of a model, in the order of its weight for a decision.
func differences(was, is registry.Release) []string {
	var lines []string
	add := func(format string, args ...any) {
		lines = append(lines, registry.PlainText(fmt.Sprintf(format, args...)))
	}
	if was.Interface != is.Interface {
		add("the interface is another one")
	}
	if was.Limits != is.Limits {
		add("the limits are others")
	}
	if was.Sources != is.Sources {
		add("reference model or cases are others")
	}
	before := make(map[string]registry.Engine)
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
			add("%s is built by %s %s in place of %s %s", e.Label(), e.Toolchain.Name, e.Toolchain.Version, old.Toolchain.Name, old.Toolchain.Version)
		case !old.NativeCode && e.NativeCode:
			add("%s carries native code", e.Label())
		case old.Digest != e.Digest:
			add("%s has other bytes", e.Label())
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
