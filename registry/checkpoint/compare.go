package checkpoint

import (
	"fmt"

	"mlpromote.dev/mlpromote/registry"
)

// FaultKind classifies how a history contradicts a checkpoint.
type FaultKind string

// The kinds of faults.
const (
	// Truncated: the history is shorter than the checkpoint.
	Truncated FaultKind = "truncated"
	// Rewritten: the first events of the history differ from the checkpoint's.
	Rewritten FaultKind = "rewritten"
	// Forked: two checkpoints that count contradict each other, so that the registry showed two
	// histories.
	Forked FaultKind = "forked"
	// Replaced: the history begins with another event, or belongs to another registry.
	Replaced FaultKind = "replaced"
)

// Seen is a checkpoint that a history is compared with.
type Seen struct {
	Checkpoint
	Name string // what messages call it, such as its file
	// Counts is true if its signature was verified. Others are compared too, but prove no fork.
	Counts bool
}

// Fault is a contradiction between a history and a checkpoint.
type Fault struct {
	Kind   FaultKind `json:"kind"`
	Name   string    `json:"checkpoint"`
	Size   int64     `json:"size"` // of the checkpoint
	Detail string    `json:"detail"`
}

// Err returns the fault as an error: CodeTrust, with a hint.
func (f Fault) Err() error {
	return registry.WithHint(
		registry.Errorf(registry.CodeTrust, "the history was %s: %s: %s", f.Kind, f.Name, f.Detail),
		"keep the checkpoint: its signature proves the earlier history; look at backups for the events it covers")
}

// Compare compares the history in the tree with checkpoints. name is that of the registry. It
// returns a fault for each checkpoint that the history does not extend. Without checkpoints there
// is nothing to find.
func (t *Tree) Compare(name string, all []Seen) ([]Fault, error) {
	var extended, contradicted []Seen
	var faults []Fault
	for _, c := range all {
		if fault := t.outside(name, c); fault != nil {
			faults = append(faults, *fault)
			continue
		}
		here, err := t.At(name, c.Size)
		if err != nil {
			return nil, err
		}
		if here.Root == c.Root {
			extended = append(extended, c)
		} else {
			contradicted = append(contradicted, c)
		}
	}
	for _, c := range contradicted {
		faults = append(faults, differs(c, extended, all))
	}
	return faults, nil
}

// Lost returns how many events a newer checkpoint covers that the history in the tree does not
// have, as after a restore. name is that of the registry. Errors: CodeInvalid if the checkpoint is
// older than the history; CodeTrust if it contradicts it.
func (t *Tree) Lost(name string, c Seen) (int64, error) {
	faults, err := t.Compare(name, []Seen{c})
	if err != nil {
		return 0, err
	}
	for _, f := range faults {
		if f.Kind != Truncated {
			return 0, f.Err()
		}
	}
	if c.Size < t.Size() {
		return 0, registry.Errorf(registry.CodeInvalid,
			"%s covers %s, and the history has %d: want a checkpoint that is newer than the history", c.Name, registry.Count(c.Size, "event"), t.Size())
	}
	return c.Size - t.Size(), nil
}

// outside returns the fault of a checkpoint that is of another history, or of more events than
// there are.
func (t *Tree) outside(name string, c Seen) *Fault {
	f := Fault{Name: c.Name, Size: c.Size}
	switch {
	case c.Origin.Registry != name:
		f.Kind, f.Detail = Replaced, fmt.Sprintf("it is of registry %q, and this is %q", c.Origin.Registry, name)
	case t.Size() > 0 && c.Origin.First != t.first:
		f.Kind = Replaced
		f.Detail = fmt.Sprintf("its first event is %s, and the history's is %s: all events were replaced, or it is of another registry of that name",
			c.Origin.First, t.first)
	case c.Size > t.Size():
		f.Kind = Truncated
		f.Detail = fmt.Sprintf("it covers %s, and the history has %d: %s missing at its end",
			registry.Count(c.Size, "event"), t.Size(), registry.Count(c.Size-t.Size(), "event"))
	default:
		return nil
	}
	return &f
}

// differs returns the fault of a checkpoint whose root is not that of the history. The largest
// checkpoint that the history extends says how far they agree.
func differs(c Seen, extended, all []Seen) Fault {
	f := Fault{Kind: Rewritten, Name: c.Name, Size: c.Size}
	agree := int64(1) // the first event, which the origin names
	for _, e := range extended {
		if e.Size < c.Size {
			agree = max(agree, e.Size)
		}
	}
	f.Detail = fmt.Sprintf("an event among %d to %d is not the one that it covers", agree+1, c.Size)
	if agree+1 == c.Size {
		f.Detail = fmt.Sprintf("event %d is not the one that it covers", c.Size)
	}
	for _, other := range all {
		same := other.Size == c.Size && other.Origin == c.Origin && other.Root != c.Root
		if c.Counts && other.Counts && (same || holds(extended, other) && other.Size >= c.Size) {
			f.Kind = Forked
			f.Detail += fmt.Sprintf("; %s is signed too and contradicts it: the registry showed two histories", other.Name)
			break
		}
	}
	return f
}

func holds(all []Seen, c Seen) bool {
	for _, e := range all {
		if e == c {
			return true
		}
	}
	return false
}
