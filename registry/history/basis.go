package history

import (
	"errors"
	"slices"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/policy"
)

// ModelState is the state of a catalog for a model in an environment at one instant.
type ModelState struct {
	Environment string
	Model       string
	Head        Head  // the zero Head if there is none
	Seq         int64 // number of the newest event of the whole catalog; 0 before the first
	// Restrictions counts the events of all models and environments that restrict releases or lift
	// a restriction ([Event.Restricts]).
	Restrictions int64
	// NodeTypes covers the stored node types, without those in files; empty if there are none.
	NodeTypes registry.Digest
	// Agreed is the configuration that the processes of the catalog agreed on.
	Agreed Configuration
}

// DecisionBasis is the state on which a decision about a head rests. Read the ModelState first and
// everything else after it, so that no change is missed. The catalog checks the basis in the
// transaction that applies the decision.
type DecisionBasis struct {
	ModelState
	// About is the release and its engines. Later evidence about them could change the decision.
	About []registry.Digest
	// From and Until bound the time for which the decision was made: a change before From or from
	// Until on needs a new decision. Zero: no bound.
	From  time.Time
	Until time.Time
	// OnNodeTypes is the digest of the node types that the decision used, those in files included; empty
	// if it used none.
	OnNodeTypes registry.Digest
}

// NewDecisionBasis returns the basis of a decision about a release under the rules of es.
func NewDecisionBasis(s ModelState, es policy.Environments, r artifact.Release) DecisionBasis {
	g := DecisionBasis{ModelState: s}
	g.Agreed.Environments = es.Configuration
	for _, subject := range r.Subjects() {
		g.About = append(g.About, subject.Digest)
	}
	return g
}

// Moved compares the basis with the current state of the catalog. since has every event of the
// model after DecisionBasis.Seq, in any environment. It returns nil if the decision still holds.
// Errors: CodeConflict, for which [BasisOutdated] is true.
func (g DecisionBasis) Moved(now ModelState, since []Event) error {
	switch {
	case g.Environment != now.Environment || g.Model != now.Model:
		return basisMoved("the decision is for %s in %s, but the change is for %s in %s", g.Model, g.Environment,
			now.Model, now.Environment)
	case g.Head.Release != now.Head.Release:
		return basisMoved("head of %s in %s: is %q, expected %q: another request moved it", g.Model, g.Environment,
			now.Head.Release, g.Head.Release)
	case g.Head.Hold != now.Head.Hold:
		return basisMoved("head of %s in %s: its hold is %q, expected %q: another request changed it", g.Model,
			g.Environment, now.Head.Hold, g.Head.Hold)
	case g.Restrictions != now.Restrictions:
		return basisMoved("a release was restricted, or a restriction lifted, after this was decided")
	case slices.Contains(g.Agreed.Differs(now.Agreed), "environments"):
		return basisMoved("the decision used environments %s, but the agreed ones are %s", g.Agreed.Environments,
			now.Agreed.Environments)
	case g.OnNodeTypes != "" && g.NodeTypes != now.NodeTypes:
		return nodeTypesMoved()
	}
	for _, e := range since {
		if e.Seq > g.Seq && g.restsOn(e) {
			return basisMoved("%s of %s in %s (event %d) came after this was decided", e.Kind, e.Model,
				e.Environment, e.Seq)
		}
	}
	return nil
}

// Holds checks that the decision was made for an instant, that of the change. Events have times in
// microseconds. Errors: CodeConflict, for which [BasisOutdated] is true.
func (g DecisionBasis) Holds(at time.Time) error {
	switch {
	case at.Before(g.From.Truncate(time.Microsecond)):
		return basisMoved("this was decided at %s, but now it is %s: the clock was turned back", registry.UTC(g.From), registry.UTC(at))
	case !g.Until.IsZero() && !at.Before(g.Until):
		return basisMoved("this was decided for the time before %s, and now it is %s", registry.UTC(g.Until), registry.UTC(at))
	}
	return nil
}

// SameNodeTypes compares the node types that the decision used with those of now. Node types in files
// are outside of the catalog, so they are read again before the change is applied. Errors:
// CodeConflict, for which [BasisOutdated] is true.
func (g DecisionBasis) SameNodeTypes(now policy.KnownNodeTypes) error {
	d, err := now.Digest()
	if err == nil && d != g.OnNodeTypes {
		return nodeTypesMoved()
	}
	return err
}

func nodeTypesMoved() error {
	return basisMoved("a node type was added, changed or removed after this was decided")
}

// restsOn reports whether an event of the model could change the decision. Every event of the
// head counts, even if the head ends up at the same release.
func (g DecisionBasis) restsOn(e Event) bool {
	if e.Kind == EventAttach {
		return slices.Contains(g.About, e.Subject)
	}
	return e.Environment == g.Environment
}

// BasisOutdated reports whether err says that the basis of a decision changed. Then the catalog
// is unchanged, and the caller can decide again.
func BasisOutdated(err error) bool {
	var m movedError
	return errors.As(err, &m)
}

// movedError marks an error of [DecisionBasis.Moved].
type movedError struct{ error }

func (m movedError) Unwrap() error { return m.error }

func basisMoved(format string, args ...any) error {
	return movedError{registry.WithHint(registry.Errorf(registry.CodeConflict, format, args...), "review the change and try again")}
}

// Restricts reports whether the event restricts releases or lifts a restriction. Such an event
// can affect decisions about any release.
func (e Event) Restricts() bool {
	return e.Kind == EventRestrict || e.Kind == EventAttach && e.PredicateType == evidence.PredicateQuarantine
}
