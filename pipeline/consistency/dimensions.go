package consistency

import (
	"fmt"
	"math"
	"time"

	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// bases are the cases that other sizes are made of: of the shard with the most, as the model takes
// them.
type bases struct {
	slots  []slot
	inputs []map[string]tensor.Tensor
	own    map[string]int64 // their sizes
}

func (s *Set) bases() (bases, error) {
	most := s.largestShard()
	var b bases
	for _, k := range s.spread(len(most.rows), otherCases) {
		of := slot{most.shard, most.rows[k]}
		one, err := s.full(of)
		if err != nil {
			return b, err
		}
		b.inputs, b.slots = append(b.inputs, one), append(b.slots, of)
	}
	return b, nil
}

// makeDimensions makes the sizes that are tried, as far as the time allows, and returns what is left of it.
func (s *Set) makeDimensions(left time.Duration) (time.Duration, error) {
	b, err := s.bases()
	if err != nil {
		return left, err
	}
	if b.own, err = sizes(s.Interface, b.inputs[0]); err != nil {
		s.leaveFor(evidence.TrialDimension, "", err.Error())
		return left, nil
	}
	for _, name := range unmade(s.Interface, b.own) {
		s.leaveFor(evidence.TrialDimension, name, "the size is 0 in the cases, and larger ones are made of theirs")
	}
	all := settings(s.Interface, b.own, s.drawnSize())
	for i, setting := range all {
		note, fits := setting.fit(s.Interface, s.MaxBytes)
		if !fits {
			s.leaveFor(evidence.TrialDimension, setting.name(), fmt.Sprintf("one case takes more than %d MiB", s.MaxBytes>>20))
			continue
		}
		size := bytesAt(s.Interface, setting.sizes)
		cost := time.Duration(float64(s.Run) * size / bytesAt(s.Interface, b.own))
		share := left / time.Duration(len(all)-i)
		n := max(affordable(share, cost, len(b.slots)), affordable(left, cost, 1))
		if n == 0 {
			s.leave(evidence.TrialDimension, setting.name(), cost, left)
			continue
		}
		n = max(min(n, int(float64(s.MaxBytes)/size), s.stacked(b.own, setting)), 1)
		left -= cost * time.Duration(n)
		if err := s.makeSizes(b, setting, n, note); err != nil {
			return left, err
		}
	}
	return left, nil
}

// stacked is how many cases are run at sizes: otherCases, counted in the larger batches that they become.
func (s *Set) stacked(own map[string]int64, at setting) int {
	symbol := batchSymbol(s.Interface)
	if own[symbol] == 0 {
		return otherCases
	}
	return int(otherCases * own[symbol] / max(at.sizes[symbol], own[symbol]))
}

// drawnSize draws a size of the leading dimension between its smallest and its largest; 0 if there is none, or if it is the batch, of which one is
// drawn anyway. Compilers have other code for sizes that are no multiples of what they compute at once, and servers make batches of any size.
func (s *Set) drawnSize() int64 {
	symbol := leading(s.Interface)
	if symbol == batchSymbol(s.Interface) && s.Interface.NoBatches() == "" {
		return 0
	}
	of := s.Interface.Dims[symbol]
	return int64(s.drawn(int(min(of.Min, math.MaxInt32)), int(min(of.Max, math.MaxInt32))))
}

func (s *Set) makeSizes(b bases, to setting, n int, note string) error {
	made := s.shard(fmt.Sprintf("check-3-%03d-sizes", len(s.trials)), b.slots[:n])
	var rows []map[string]tensor.Tensor
	for at := range n {
		rows = append(rows, sized(s.Interface, b.inputs, at, to.sizes))
	}
	stacked, err := join(rows, tensor.Stack)
	if err != nil {
		return err
	}
	s.trials = append(s.trials, trial{kind: evidence.TrialDimension, what: to.name(), note: note, shards: []shard{made}})
	return write(made.Path, stacked)
}

// sized gives a case these sizes. A larger batch is filled with the cases that follow it.
func sized(i validators.Interface, cases []map[string]tensor.Tensor, at int, to map[string]int64) map[string]tensor.Tensor {
	batch := batchSymbol(i)
	made := make(map[string]tensor.Tensor)
	for _, input := range i.Inputs {
		t := cases[at][input.Name]
		for axis, d := range input.Shape {
			if d.Symbol == "" {
				continue
			}
			if d.Symbol == batch {
				t = filled(cases, at, input.Name, to[batch])
			}
			t = resize(t, axis, to[d.Symbol])
		}
		made[input.Name] = t
	}
	return made
}

// filled puts the cases that follow behind a case, until there are so many rows or all cases are
// there.
func filled(cases []map[string]tensor.Tensor, at int, name string, rows int64) tensor.Tensor {
	own := max(cases[at][name].Shape[0], 1)
	parts := make([]tensor.Tensor, max(1, min(int64(len(cases)), (rows+own-1)/own)))
	for i := range parts {
		parts[i] = cases[(at+i)%len(cases)][name]
	}
	all, err := tensor.Concat(parts...)
	if err != nil {
		return parts[0] // not of one shape: it is repeated instead
	}
	return all
}
