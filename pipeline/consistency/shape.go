package consistency

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// batchSymbol is the symbol along which cases are put together; empty if there is none.
func batchSymbol(i validators.Interface) string {
	symbol, _ := i.Batch()
	return symbol
}

// leading is the symbol in front of all inputs, whatever it is called; else the batch. Empty if there is none.
func leading(i validators.Interface) string {
	symbol := ""
	for _, input := range i.Inputs {
		if len(input.Shape) == 0 || input.Shape[0].Symbol == "" || symbol != "" && input.Shape[0].Symbol != symbol {
			return batchSymbol(i)
		}
		symbol = input.Shape[0].Symbol
	}
	return symbol
}

// setting is sizes of symbols that are tried.
type setting struct {
	what  string
	sizes map[string]int64
	moved []string // the symbols that the setting is about
}

// settings lists what is tried for cases of these sizes: each symbol at its smallest, optimal and
// largest size, then all at their smallest and largest, and the leading one at the size that was drawn, if it is above 0. What the
// cases have themselves is not among them, and neither is a batch of several cases, which are compared with themselves.
func settings(i validators.Interface, own map[string]int64, drawn int64) []setting {
	var all []setting
	add := func(what string, moved []string, size func(validators.DimRange) int64) {
		s := setting{what: what, sizes: maps.Clone(own), moved: moved}
		for _, symbol := range moved {
			s.sizes[symbol] = size(i.Dims[symbol])
		}
		same := func(other setting) bool { return maps.Equal(other.sizes, s.sizes) }
		if !maps.Equal(own, s.sizes) && !stacks(i, own, s.sizes) && !slices.ContainsFunc(all, same) {
			all = append(all, s)
		}
	}
	smallest := func(r validators.DimRange) int64 { return r.Min }
	largest := func(r validators.DimRange) int64 { return r.Max }
	symbols := slices.DeleteFunc(i.Symbols(), func(s string) bool { return own[s] == 0 })
	for _, symbol := range symbols {
		one := []string{symbol}
		add("", one, smallest)
		add("", one, func(r validators.DimRange) int64 { return r.Opt })
		add("", one, largest)
	}
	add("all min: ", symbols, smallest)
	add("all max: ", symbols, largest)
	if symbol := leading(i); drawn > 0 && own[symbol] > 0 {
		add("", []string{symbol}, func(validators.DimRange) int64 { return drawn })
	}
	return all
}

// stacks reports whether sizes differ from those of the cases by the number of cases in a batch alone.
func stacks(i validators.Interface, own, to map[string]int64) bool {
	for symbol, size := range to {
		if size != own[symbol] && !isStack(i, symbol, own[symbol], size) {
			return false
		}
	}
	return true
}

// unmade names the sizes that would be tried of symbols that are 0 in the cases.
func unmade(i validators.Interface, own map[string]int64) []string {
	var names []string
	for _, symbol := range i.Symbols() {
		if size, known := own[symbol]; !known || size != 0 {
			continue
		}
		r := i.Dims[symbol]
		for _, size := range slices.Compact([]int64{r.Min, r.Opt, r.Max}) {
			if size != 0 {
				names = append(names, fmt.Sprintf("%s=%d", symbol, size))
			}
		}
	}
	return names
}

// name says the sizes that are tried: "seq=64".
func (s setting) name() string {
	parts := make([]string, len(s.moved))
	for i, symbol := range s.moved {
		parts[i] = fmt.Sprintf("%s=%d", symbol, s.sizes[symbol])
	}
	return s.what + strings.Join(parts, ", ")
}

// sizes returns the size of each symbol in one case. Errors: CodeInvalid for inputs that contradict
// each other.
func sizes(i validators.Interface, one map[string]tensor.Tensor) (map[string]int64, error) {
	own := make(map[string]int64)
	for _, input := range i.Inputs {
		shape := one[input.Name].Shape
		for axis, d := range input.Shape {
			if d.Symbol == "" {
				continue
			}
			if known, ok := own[d.Symbol]; ok && known != shape[axis] {
				return nil, registry.Errorf(registry.CodeInvalid, "the cases have %s=%d and %s=%d in one case", d.Symbol, known, d.Symbol, shape[axis])
			}
			own[d.Symbol] = shape[axis]
		}
	}
	return own, nil
}

// bytesAt returns what the inputs and outputs of one case take at these sizes. Outputs with a
// symbol that no input has count as one element in it.
func bytesAt(i validators.Interface, at map[string]int64) float64 {
	total := 0.0
	for _, t := range slices.Concat(i.Inputs, i.Outputs) {
		n := float64(max(t.DType.Size(), 1))
		for _, d := range t.Shape {
			n *= float64(max(d.Size, at[d.Symbol], 1))
		}
		total += n
	}
	return total
}

// fit makes the largest of the moved symbols that can be smaller so, until one case fits in so many bytes, and
// reports whether it does then.
func (s *setting) fit(i validators.Interface, most int64) (note string, fits bool) {
	before := s.name()
	for bytesAt(i, s.sizes) > float64(most) {
		least := func(symbol string) int64 { return max(i.Dims[symbol].Min, 1) } // half of 1 makes nothing smaller
		larger := slices.DeleteFunc(slices.Clone(s.moved), func(symbol string) bool { return s.sizes[symbol] <= least(symbol) })
		if len(larger) == 0 {
			return "", false
		}
		symbol := slices.MaxFunc(larger, func(a, b string) int {
			return cmp.Compare(s.sizes[a]/least(a), s.sizes[b]/least(b))
		})
		s.sizes[symbol] = max(s.sizes[symbol]/2, least(symbol))
	}
	if after := s.name(); after != before {
		return fmt.Sprintf("declared is %s, which takes more than %d MiB", before, most>>20), true
	}
	return "", true
}

// resize cuts or repeats a tensor along an axis to a size.
func resize(t tensor.Tensor, axis int, size int64) tensor.Tensor {
	have := t.Shape[axis]
	if have == size {
		return t
	}
	inner, outer := int64(t.DType.Size()), int64(1)
	for _, n := range t.Shape[axis+1:] {
		inner *= n
	}
	for _, n := range t.Shape[:axis] {
		outer *= n
	}
	data := make([]byte, 0, outer*size*inner)
	for block := range outer {
		from := bytes.Repeat(t.Data[block*have*inner:(block+1)*have*inner], int((size+have-1)/have))
		data = append(data, from[:size*inner]...)
	}
	shape := slices.Clone(t.Shape)
	shape[axis] = size
	return tensor.Tensor{DType: t.DType, Shape: shape, Data: data}
}
