package evidence

import (
	"slices"

	"mlpromote.dev/mlpromote/registry/artifact"
)

// KeptFrom returns the first engine that a node could run and that a report keeps from it, where a pass on another machine counts:
// without one, the engine is kept from all nodes.
func (cs Counted) KeptFrom(r artifact.Release, n artifact.Node) (e artifact.Engine, against Report, ok bool) {
	for _, e := range r.Ranked() {
		if len(e.Target.Match(n, n.Runtime())) > 0 {
			continue
		}
		found := cs.Proofs(r, e)
		if at := slices.IndexFunc(found.Against, func(a Report) bool { return a.keepsFrom(n) }); at >= 0 && len(found.Passes) > 0 {
			return e, found.Against[at], true
		}
	}
	return artifact.Engine{}, Report{}, false
}
