package validators

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"mlpromote.dev/mlpromote/registry/artifact"
)

// dropped lists the engines whose machines have none any more that they can load as they are: with the
// runtimes that they have, and without a profile that was not needed.
func dropped(now, was []artifact.Engine) []string {
	var lines []string
	for _, e := range was {
		least, there := []string(nil), false
		for _, n := range now {
			if !n.Target.Covers(e.Target) {
				continue
			}
			if more := needsMore(n, e); !there || len(more) < len(least) {
				least, there = more, true
			}
		}
		switch {
		case !there:
			lines = append(lines, "no engine for the machines of "+e.Label())
		case len(least) > 0:
			lines = append(lines, "the machines of "+e.Label()+" "+strings.Join(least, ", and "))
		}
	}
	return lines
}

// needsMore lists what an engine needs of a machine that has all that another needs.
func needsMore(now, was artifact.Engine) []string {
	var more []string
	if now.Load != nil && now.Load.Required && (was.Load == nil || !was.Load.Required) {
		more = append(more, "have to load it with its profile (load.required), and had not")
	}
	for _, runtime := range slices.Sorted(maps.Keys(now.Target.Runtimes)) {
		needs := now.Target.Runtimes[runtime]
		switch needed, ok := was.Target.Runtimes[runtime]; {
		case !ok:
			more = append(more, fmt.Sprintf("need %s %s, and needed none", runtime, needs))
		case !needs.Covers(needed):
			more = append(more, fmt.Sprintf("need %s %s, and needed %s", runtime, needs, needed))
		}
	}
	return more
}

// Breaks lists the differences that would break a caller of the interface that was: an input or
// output that is gone or of another dtype or shape, an input that is new, sizes that are not accepted
// any more, classes or features in another order.
func (i Interface) Breaks(was Interface) []string {
	c := compatibility{now: i, was: was, ties: map[string]string{}}
	for _, input := range was.Inputs {
		c.tensor("input", input, i.Inputs, c.accepts)
	}
	for _, input := range i.Inputs {
		if _, ok := find(was.Inputs, input.Name); !ok {
			c.lines = append(c.lines, "input "+strconv.Quote(input.Name)+" is new, and callers do not give it")
		}
	}
	for _, output := range was.Outputs {
		c.tensor("output", output, i.Outputs, c.gives)
	}
	c.order("inputs", i.Inputs, was.Inputs)
	c.order("outputs", i.Outputs, was.Outputs)
	return c.lines
}

type compatibility struct {
	now, was Interface
	lines    []string
	ties     map[string]string // by symbol of now: what it stands for of was, a symbol or a size
}

func (c *compatibility) tensor(side string, was TensorInfo, all []TensorInfo, fits func(now, was Dim) bool) {
	differ := func(format string, args ...any) {
		c.lines = append(c.lines, side+" "+strconv.Quote(was.Name)+" "+fmt.Sprintf(format, args...))
	}
	now, ok := find(all, was.Name)
	switch {
	case !ok:
		differ("is gone")
		return
	case now.DType != was.DType:
		differ("is %s, was %s", now.DType, was.DType)
	case len(now.Shape) != len(was.Shape):
		differ("has shape %v, had %v", now.Shape, was.Shape)
	default:
		for i := range was.Shape {
			if !fits(now.Shape[i], was.Shape[i]) {
				differ("has %s in dimension %d, had %s", c.now.describe(now.Shape[i]), i, c.was.describe(was.Shape[i]))
			}
		}
	}
	if now.Kind != was.Kind && was.Kind != "" {
		differ("is of kind %s, was %s", now.Kind, was.Kind)
	}
	if len(was.Names) > 0 && !slices.Equal(now.Names, was.Names) {
		differ("has other names: %s", nameDifference(now.Names, was.Names))
	}
}

// accepts reports whether a dimension of an input takes every size that it took.
func (c *compatibility) accepts(now, was Dim) bool {
	low, high := c.was.sizes(was)
	if now.Symbol == "" {
		return low == now.Size && high == now.Size
	}
	if tied, ok := c.ties[now.Symbol]; ok && tied != c.was.describe(was) {
		return false // sizes that were independent have to be equal now
	}
	c.ties[now.Symbol] = c.was.describe(was)
	least, most := c.now.sizes(now)
	return least <= low && high <= most
}

// gives reports whether a dimension of an output has the size that a caller expects: the same number,
// or one that follows from the same sizes of inputs.
func (c *compatibility) gives(now, was Dim) bool {
	if was.Symbol == "" || now.Symbol == "" {
		least, most := c.was.sizes(was)
		low, high := c.now.sizes(now)
		return least == most && low == high && least == low
	}
	tied, ok := c.ties[now.Symbol]
	return tied == c.was.describe(was) || !ok && !slices.Contains(slices.Collect(maps.Values(c.ties)), c.was.describe(was))
}

// order finds inputs or outputs at other places than they were: some callers count them.
func (c *compatibility) order(side string, now, was []TensorInfo) {
	for i := range was {
		if _, there := find(now, was[i].Name); !there || i >= len(now) || now[i].Name == was[i].Name {
			continue
		}
		c.lines = append(c.lines, fmt.Sprintf("%s are in another order: %d is %q, was %q", side, i, now[i].Name, was[i].Name))
		return
	}
}

// sizes of a dimension, from the least to the most.
func (i Interface) sizes(d Dim) (least, most int64) {
	if d.Symbol == "" {
		return d.Size, d.Size
	}
	if r, ok := i.Dims[d.Symbol]; ok {
		return r.Min, r.Max
	}
	r := DefaultDimRange()
	return r.Min, r.Max
}

// describe says the sizes of a dimension.
func (i Interface) describe(d Dim) string {
	least, most := i.sizes(d)
	if d.Symbol == "" {
		return strconv.FormatInt(d.Size, 10)
	}
	return fmt.Sprintf("%s from %d to %d", d.Symbol, least, most)
}

// nameDifference names the first of two lists that differs.
func nameDifference(now, was []string) string {
	for n := range was {
		if n >= len(now) || now[n] != was[n] {
			is := "nothing"
			if n < len(now) {
				is = strconv.Quote(now[n])
			}
			return fmt.Sprintf("%d is %s, was %q", n, is, was[n])
		}
	}
	return fmt.Sprintf("%d in place of %d", len(now), len(was))
}
