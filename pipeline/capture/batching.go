package capture

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/pipeline/capture/inference"
	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// batching says which tensors have a batch for their first dimension.
type batching struct {
	known map[string]bool // by name, for those that the model's shapes are known of
	rest  bool            // all others
}

// split makes cases of the rows of a batch. A tensor without a batch belongs to each of them.
func (b *batching) split(tensors []inference.Tensor) (rows []cases.Row, reason string, err error) {
	count, err := b.count(tensors)
	if err != nil {
		return nil, skipUnreadable, err
	}
	if size := b.bytes(tensors, count); size > maxSplit {
		return nil, skipLarge, registry.Errorf(registry.CodeInvalid,
			"%s of one request have %d bytes, with the inputs without a batch in each: want at most %d",
			registry.Count(int(count), "case"), size, int64(maxSplit))
	}
	rows = make([]cases.Row, count)
	for i := range rows {
		rows[i] = make(cases.Row, len(tensors))
		for _, t := range tensors {
			row := tensor.Tensor{DType: t.DType, Shape: slices.Concat([]int64{1}, t.Shape), Data: t.Data}
			if b.has(t.Name) {
				if row, err = t.Rows(int64(i), int64(i)+1); err != nil {
					return nil, skipUnreadable, err
				}
			}
			rows[i][t.Name] = row
		}
	}
	return rows, "", nil
}

// count returns the size of the batch, which is 1 where no tensor has one.
func (b *batching) count(tensors []inference.Tensor) (int64, error) {
	count, named := int64(-1), ""
	for _, t := range tensors {
		if !b.has(t.Name) {
			continue
		}
		if len(t.Shape) == 0 {
			return 0, registry.Errorf(registry.CodeInvalid, "tensor %q has no dimension for a batch", t.Name)
		}
		if count >= 0 && t.Shape[0] != count {
			return 0, registry.Errorf(registry.CodeInvalid, "tensor %q has a batch of %d, %q one of %d", t.Name, t.Shape[0], named, count)
		}
		count, named = t.Shape[0], t.Name
	}
	if count > maxRows {
		return 0, registry.Errorf(registry.CodeInvalid, "a batch of %d: want at most %d", count, maxRows)
	}
	if count < 0 {
		count = 1
	}
	return count, nil
}

// bytes returns the size of the data of all cases of a request.
func (b *batching) bytes(tensors []inference.Tensor, count int64) int64 {
	var n int64
	for _, t := range tensors {
		if size := int64(len(t.Data)); b.has(t.Name) {
			n += size
		} else {
			n += size * count // at most 64 MiB, 65,536 times
		}
	}
	return n
}

// shared returns the sums of the inputs without a batch. They are the same in each case of a request, and
// may be most of its bytes.
func (b *batching) shared(rows []cases.Row) map[string]cases.Sum {
	sums := make(map[string]cases.Sum)
	if len(rows) == 0 {
		return sums
	}
	for name, t := range rows[0] {
		if isInput(name) && !b.has(name) {
			sums[name] = sha256.Sum256(t.Data)
		}
	}
	return sums
}

// sumOf identifies the inputs of a case. known has the sums of the data of some of them.
func sumOf(row cases.Row, known map[string]cases.Sum) cases.Sum {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(row)) {
		if !isInput(name) {
			continue
		}
		t := row[name]
		sum, ok := known[name]
		if !ok {
			sum = sha256.Sum256(t.Data)
		}
		fmt.Fprintf(h, "%q %s %v\n", name, t.DType, t.Shape)
		h.Write(sum[:])
	}
	return cases.Sum(h.Sum(nil))
}

func (b *batching) has(name string) bool {
	if batched, ok := b.known[name]; ok {
		return batched
	}
	return b.rest
}

// isInput tells inputs from what a service answered.
func isInput(name string) bool { return !strings.HasPrefix(name, cases.ServedPrefix) }
